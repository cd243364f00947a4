"""The stub upstream does what a body's text asks, and counts what its clients did."""

from __future__ import annotations

import asyncio
import http.client
import json
import shutil
import time
from collections.abc import Iterator

import pytest

from benchmarks import client, process, stub
from benchmarks.workloads import BURST, SMALL, Workload
from tests.support.patience import SLACK

pytestmark = pytest.mark.skipif(
    not any(map(shutil.which, ("cc", "gcc", "clang"))), reason="needs a C compiler"
)


@pytest.fixture(scope="module")
def port(tmp_path_factory: pytest.TempPathFactory) -> Iterator[int]:
    folder = tmp_path_factory.mktemp("stub")
    binary = stub.build(folder)
    port, log = process.free_port(), folder / "log"
    started = process.start([str(binary), str(port)], core=0, log=log)
    try:
        process.wait_until_ready(started, port, "/health", log, timeout=5)
        yield port
    finally:
        process.stop(started)


def post(port: int, body: bytes, chunked: bool = False) -> tuple[str, float]:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=5)
    started = time.perf_counter()
    pieces = iter([body[:10], body[10:]]) if chunked else body
    connection.request("POST", "/v1/chat/completions", pieces, encode_chunked=chunked)
    text = connection.getresponse().read().decode()
    connection.close()
    return text, time.perf_counter() - started


def test_a_stream_has_the_role_the_tokens_and_the_end(port: int) -> None:
    text, _ = post(port, BURST.body("tiny"))
    events = text.strip().split("\n\n")
    first = json.loads(events[0].removeprefix("data: "))
    assert first["choices"][0]["delta"] == {"role": "assistant", "content": ""}
    assert [event.count('" token"') for event in events] == [0, *[1] * BURST.events, 0]
    assert events[-1] == "data: [DONE]"


def test_usage_only_for_those_who_ask(port: int) -> None:
    asked = BURST.body("tiny")[:-1] + b',"stream_options":{"include_usage":true}}'
    assert '"usage"' not in post(port, BURST.body("tiny"))[0]
    usage = json.loads(post(port, asked)[0].strip().split("\n\n")[-2].removeprefix("data: "))
    assert usage["choices"] == []
    assert usage["usage"]["completion_tokens"] == 50


def test_an_unstreamed_reply_waits_as_told(port: int) -> None:
    text, seconds = post(port, Workload("late", "", 1, first_ms=150).body("tiny"))
    assert json.loads(text)["object"] == "chat.completion"
    assert 0.15 <= seconds < 0.15 + SLACK


def test_a_chunked_request_is_understood(port: int) -> None:
    assert json.loads(post(port, SMALL.body("tiny"), chunked=True)[0])["model"] == "tiny"


async def test_paced_events_come_at_their_interval(port: int) -> None:
    connection = await client.connect(port)
    body = Workload("paced", "", 1, events=10, interval_ms=20).body("tiny")
    replies = await client.paced([connection], [client.request("k", body, 0)], 2, spread=0)
    connection.close()
    for reply in replies:
        assert reply.ok
        assert reply.tokens == 10
        assert sum(reply.gaps) == pytest.approx(0.18, abs=0.05)


async def test_a_client_that_leaves_is_counted(port: int) -> None:
    before = stub.state(port)
    connection = await client.connect(port)
    body = Workload("long", "", 1, events=100, interval_ms=50).body("tiny")
    reply = connection.send(client.request("k", body, 0))
    while not reply.tokens:
        await asyncio.sleep(0.01)
    assert stub.state(port)["active"] == 1
    connection.close()
    while stub.state(port)["active"]:
        await asyncio.sleep(0.01)
    assert stub.state(port)["aborted"] == before["aborted"] + 1


async def test_a_reader_that_stalls_holds_the_stub_back(port: int) -> None:
    connection = await client.connect(port)
    connection.stall()
    body = Workload("huge", "", 1, events=400_000).body("tiny")
    connection.send(client.request("k", body, 0))
    await asyncio.sleep(0.3)
    assert stub.state(port)["active"] == 1  # it could not write all
    connection.close()
