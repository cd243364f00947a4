"""Several requests on one connection: each in its turn, none at the cost of another."""

from __future__ import annotations

import asyncio
import json
import time

import pytest
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from gateway.records import Outcome
from tests.support.apis import CHAT
from tests.support.impatient import BODY_TIMEOUT, HEADER_TIMEOUT, WHOLE, asked
from tests.support.patience import SLACK
from tests.support.running import KEY, Running
from tests.support.scripted import ScriptedBackend
from tests.support.site import own, until
from tests.support.wire import head, post, wire

pytestmark = pytest.mark.asyncio(loop_scope="module")


async def test_two_requests_in_one_segment(it: Running, backend: ScriptedBackend) -> None:
    async with wire(it.port) as one:
        one.send(post(asked(0.1)) + post(asked(stream=True)))
        first, second = await one.answer(), await one.answer()
        assert (first.status, first.body) == (200, WHOLE)
        assert second.body == b"".join(CHAT.frames)
        assert second.headers["transfer-encoding"] == "chunked"
    assert [record.outcome for record in it.records] == [Outcome.OK, Outcome.OK]
    assert len(backend.requests) == 2


async def test_hot_and_cold_requests_in_one_segment(it: Running) -> None:
    health = b"GET /health HTTP/1.1\r\nhost: x\r\n\r\n"
    async with wire(it.port) as one:
        one.send(post(asked(0.1)) + health + post(asked(stream=True)) + health)
        assert (await one.answer()).body == WHOLE
        assert (await one.answer()).json()["status"] == "ok"
        assert (await one.answer()).body == b"".join(CHAT.frames)
        assert (await one.answer()).json()["status"] == "ok"


@own
async def test_requests_are_sent_on_one_after_the_other(
    it: Running, backend: ScriptedBackend
) -> None:
    async with wire(it.port) as one:
        one.send(post(asked(0.15)) + post(asked()))
        await until(lambda: backend.requests)
        await asyncio.sleep(0.05)
        assert len(backend.requests) == 1
        await one.answer()
        await one.answer()


@own
@pytest.mark.parametrize(
    "queued",
    [post(asked()), post(asked(stream=True)), b"GET /health HTTP/1.1\r\nhost: x\r\n\r\n"],
    ids=["whole", "stream", "cold"],
)
async def test_leaving_with_a_request_queued(
    it: Running, backend: ScriptedBackend, queued: bytes
) -> None:
    """Reading goes on behind a queued request, or nobody would notice."""
    async with wire(it.port) as one:
        one.send(post(asked(30)) + queued)
        await until(lambda: backend.requests)
    await asyncio.wait_for(backend.requests[0].left.wait(), SLACK)
    await it.record(1 if b"/health" in queued else 2)
    assert {record.outcome for record in it.records} == {Outcome.CLIENT_GONE}
    assert len(backend.requests) == 1
    assert it.gateway.context.table.backends["b0"].outstanding == 0


@own
async def test_a_large_body_waits_outside_for_its_turn(
    it: Running, backend: ScriptedBackend
) -> None:
    """So much as is read ahead is little; the rest stays with the client."""
    large = post({**asked(), "x": " " * 900_000})
    async with wire(it.port) as one:
        one.send(post(asked(0.3)) + large)
        await until(lambda: backend.requests)
        await asyncio.sleep(0.1)
        (protocol,) = it.server.server_state.connections
        assert isinstance(protocol, HttpToolsProtocol)
        assert protocol.flow.read_paused
        assert (await one.answer()).body == WHOLE
        assert (await one.answer()).body == WHOLE
    assert len(backend.requests[1].body) > 900_000


@own
async def test_a_queued_body_is_not_timed_while_it_cannot_be_read(it: Running) -> None:
    body = json.dumps(asked()).encode()
    async with wire(it.port) as one:
        length = f"content-length: {len(body)}\r\n"
        one.send(post(asked(2 * BODY_TIMEOUT, stream=True)) + head(headers=length) + body[:9])
        first = await one.answer()
        assert first.body == b"".join(CHAT.frames), "the second request disturbed the first one"
        await asyncio.sleep(BODY_TIMEOUT / 2)
        one.send(body[9:])
        assert (await one.answer()).body == WHOLE


@own
async def test_a_queued_body_is_timed_from_its_turn(it: Running) -> None:
    async with wire(it.port) as one:
        queued = head(headers="content-length: 99\r\n") + b"{"
        one.send(post(asked(2 * BODY_TIMEOUT)) + queued)
        assert (await one.answer()).body == WHOLE
        began = time.monotonic()
        assert (await one.answer()).status == 408
        assert BODY_TIMEOUT * 0.9 <= time.monotonic() - began < BODY_TIMEOUT + SLACK


@own
@pytest.mark.parametrize(
    "behind",
    [
        b"POST /v1/chat/comp",
        b"\x16\x03\x01 not HTTP\r\n\r\n",
        b"CONNECT x:443 HTTP/1.1\r\nhost: x\r\n\r\n",
    ],
)
async def test_what_comes_behind_a_request_does_not_spoil_its_answer(
    it: Running, behind: bytes
) -> None:
    """A head that stops, bytes that are no request at all, and a target that is none."""
    async with wire(it.port) as one:
        one.send(post(asked(2 * HEADER_TIMEOUT, stream=True)) + behind)
        assert (await one.answer()).body == b"".join(CHAT.frames)
        rest = await one.closed()
        assert rest == b"" or rest.startswith(b"HTTP/1.1 4")
    assert it.records[0].outcome is Outcome.OK


async def test_a_head_that_begins_where_a_large_body_ends(it: Running) -> None:
    """The read that holds both says nothing of the head's size."""
    large = post({**asked(), "x": " " * 60_000})
    small = post(asked())
    async with wire(it.port) as one:
        one.send(large + small[:20])
        assert (await one.answer()).status == 200
        one.send(small[20:])
        assert (await one.answer()).status == 200


@own
async def test_a_crowd_of_queued_requests_is_bounded(it: Running) -> None:
    """A read holds thousands of small requests; each would cost kilobytes."""
    bad = head(headers="content-length: 0\r\n").replace(KEY.encode(), b"k")
    async with wire(it.port, limit=2**20) as one:
        one.send(post(asked(0.2)) + bad * 1500)
        assert (await one.answer()).body == WHOLE
        rest = await one.closed()
        assert 8 <= rest.count(b"HTTP/1.1 401") <= 200
    assert len(it.records) <= 200


@own
async def test_a_crowd_that_comes_one_by_one_is_bounded_too(it: Running) -> None:
    """Reading goes on behind a queue: it would grow for as long as an answer takes."""
    bad = head(headers="content-length: 0\r\n").replace(KEY.encode(), b"k")
    async with wire(it.port, limit=2**20) as one:
        one.send(post(asked(0.5)))
        for _ in range(150):
            one.send(bad)
            await asyncio.sleep(0.001)
        assert (await one.answer()).body == WHOLE
        rest = await one.closed()
        assert 8 <= rest.count(b"HTTP/1.1 401") <= 64


@own
async def test_queued_refusals_do_not_nest(it: Running) -> None:
    """Each is answered within the end of the one before; a deep queue must not be a deep stack."""
    bad = head(headers="content-length: 0\r\n").replace(KEY.encode(), b"k")
    async with wire(it.port, limit=2**20) as one:
        one.send(post(asked(0.1)) + bad * 60)
        assert (await one.answer()).body == WHOLE
        for _ in range(60):
            assert (await one.answer()).status == 401
        one.send(post(asked()))
        assert (await one.answer()).body == WHOLE


@own
async def test_leaving_with_a_cold_request_queued(
    it: Running, caplog: pytest.LogCaptureFixture
) -> None:
    """The one before it has nobody to answer, either, and that is no error of the gateway's."""
    for _ in range(10):
        async with wire(it.port) as one:
            one.send(b"GET /metrics HTTP/1.1\r\nhost: x\r\n\r\n" * 2)
            await until(lambda: it.server.server_state.tasks)
        await it.settle()
    assert caplog.messages == []


@own
async def test_a_broken_body_that_a_cold_route_did_not_wait_for(
    it: Running, caplog: pytest.LogCaptureFixture
) -> None:
    async with wire(it.port) as one:
        one.send(head("/nothing", "transfer-encoding: chunked\r\n") + b"zz\r\n{}")
        assert (await one.answer()).status == 400
        assert await one.closed() == b""
    await it.settle()
    assert [one for one in caplog.records if one.levelname == "ERROR"] == []


async def test_many_requests_on_one_connection(it: Running, backend: ScriptedBackend) -> None:
    async with wire(it.port) as one:
        for n in range(20):
            one.send(post(asked(stream=n % 2 == 0)))
            assert (await one.answer()).status == 200
    assert len(backend.requests) == 20
