"""What a client's connection may do, byte by byte: slow, half-closed, outdated, not HTTP."""

from __future__ import annotations

import asyncio
import json
import socket
import time

import pytest
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from gateway.records import Outcome
from tests.support.apis import CHAT, MESSAGES
from tests.support.impatient import BODY_TIMEOUT, HEADER_TIMEOUT, WHOLE, asked
from tests.support.patience import SLACK
from tests.support.running import KEY, Running
from tests.support.scripted import ScriptedBackend, chunk
from tests.support.site import own, until
from tests.support.wire import Wire, head, post, wire

pytestmark = pytest.mark.asyncio(loop_scope="module")


async def trickle(one: Wire, data: bytes) -> None:
    """A byte every 30 ms until the other side has had enough."""
    for n in range(len(data)):
        if one.reader.at_eof() or one.writer.is_closing():
            return
        one.send(data[n : n + 1])
        await asyncio.sleep(0.03)


# Slow clients


@own
async def test_a_connection_that_is_never_used_is_closed(it: Running) -> None:
    began = time.monotonic()
    async with wire(it.port) as one:
        assert await one.closed(within=SLACK) == b""
    assert HEADER_TIMEOUT * 0.9 <= time.monotonic() - began < HEADER_TIMEOUT + SLACK


@own
async def test_a_head_that_trickles_is_cut_off(it: Running, backend: ScriptedBackend) -> None:
    began = time.monotonic()
    async with wire(it.port) as one:
        sending = asyncio.ensure_future(trickle(one, post(asked())))
        answer = await one.answer()
        assert HEADER_TIMEOUT * 0.9 <= time.monotonic() - began < HEADER_TIMEOUT + SLACK
        assert answer.status == 408
        assert "request head did not arrive within 0.3 s" in answer.json()["error"]["message"]
        assert await one.closed() == b""
        sending.cancel()
    assert not backend.requests


@pytest.mark.parametrize("framing", ["content-length: 999", "transfer-encoding: chunked"])
async def test_a_body_that_trickles_is_cut_off(
    it: Running, backend: ScriptedBackend, framing: str
) -> None:
    began = time.monotonic()
    body = json.dumps({**MESSAGES.request, "x": " " * 900}).encode()
    if "chunked" in framing:
        body = b"".join(chunk(body[n : n + 1]) for n in range(len(body)))
    async with wire(it.port) as one:
        one.send(head(MESSAGES.path, framing + "\r\n"))
        sending = asyncio.ensure_future(trickle(one, body))
        answer = await one.answer()
        assert BODY_TIMEOUT * 0.9 <= time.monotonic() - began < BODY_TIMEOUT + SLACK
        assert answer.status == 408
        error = answer.json()
        assert error["type"] == "error" and error["request_id"].startswith("req_")
        assert "request body did not arrive within 0.4 s" in error["error"]["message"]
        sending.cancel()
    record = await it.record()
    assert (record.status, record.outcome, record.key) == (408, Outcome.REJECTED, "dev")
    assert not backend.requests


@own
async def test_a_client_that_stops_within_its_body_is_closed(it: Running) -> None:
    async with wire(it.port) as one:
        one.send(head(headers="content-length: 100\r\n") + b'{"model"')
        assert (await one.answer()).status == 408
        assert await one.closed(within=4) == b"", "nothing may follow the answer"


@own
async def test_a_body_that_a_cold_route_did_not_wait_for(it: Running) -> None:
    """The answer is out before the body is in: when the time is up there is no second answer."""
    async with wire(it.port) as one:
        one.send(head("/nowhere", "content-length: 100\r\n") + b"{")
        assert (await one.answer()).status == 404
        assert await one.closed(within=4) == b""


@own
@pytest.mark.parametrize("pieces", [1, 40])
async def test_a_head_that_is_too_large(it: Running, pieces: int) -> None:
    raw = head(headers="".join(f"x-{n}: {'a' * 250}\r\n" for n in range(40)))
    size = len(raw) // pieces + 1
    async with wire(it.port) as one:
        for n in range(0, len(raw), size):
            one.send(raw[n : n + size])
            await asyncio.sleep(0)
        answer = await one.answer()
        assert answer.status == 431
        assert "larger than the 8 KiB" in answer.json()["error"]["message"]
        await one.closed()


@own
async def test_a_head_without_end(it: Running) -> None:
    async with wire(it.port) as one:
        one.send(b"POST /v1/chat/completions HTTP/1.1\r\n")
        answer = asyncio.ensure_future(one.answer())
        sent = 0
        while not answer.done() and sent < 2**20:
            one.send(b"x-filler: " + b"a" * 1012 + b"\r\n")
            sent += 1024
            await asyncio.sleep(0)
        assert (await answer).status == 431
        assert sent < 2**19, "it was cut off late"
    assert not it.records


# Clients that leave, or seem to


@pytest.mark.parametrize("stream", [False, True])
async def test_a_client_that_closes_its_side_counts_as_gone(
    it: Running, backend: ScriptedBackend, stream: bool
) -> None:
    """From here a process that died and one that only stopped sending look the same."""
    async with wire(it.port) as one:
        one.send(post(asked(30, stream=stream)))
        await until(lambda: backend.requests)
        one.writer.write_eof()
        await asyncio.wait_for(backend.requests[0].left.wait(), SLACK)
        assert (await it.record()).outcome is Outcome.CLIENT_GONE
        assert it.gateway.context.table.backends["b0"].outstanding == 0


async def test_a_client_that_leaves_within_its_body(it: Running, backend: ScriptedBackend) -> None:
    async with wire(it.port) as one:
        one.send(head(headers="content-length: 100\r\n") + b'{"model":')
        await asyncio.sleep(0.05)
    record = await it.record()
    assert (record.outcome, record.status, record.key) == (Outcome.CLIENT_GONE, 0, "dev")
    assert not backend.requests


# Expect: 100-continue


async def test_a_client_that_waits_to_be_told_to_go_on(it: Running) -> None:
    body = json.dumps(asked()).encode()
    async with wire(it.port) as one:
        one.send(head(headers=f"content-length: {len(body)}\r\nexpect: 100-continue\r\n"))
        async with asyncio.timeout(1):
            status, headers = await one.head()
        assert (status, headers) == (100, {})
        one.send(body)
        answer = await one.answer()
        assert (answer.status, answer.body) == (200, WHOLE)


@pytest.mark.parametrize("fault", ["key", "size"])
async def test_a_client_that_waits_is_refused_without_being_told_to_go_on(
    it: Running, fault: str
) -> None:
    size = 2**21 if fault == "size" else 10
    raw = head(headers=f"content-length: {size}\r\nexpect: 100-continue\r\n")
    async with wire(it.port) as one:
        one.send(raw.replace(KEY.encode(), b"sk-bad") if fault == "key" else raw)
        async with asyncio.timeout(1):
            status, _ = await one.head()
        assert status == (413 if fault == "size" else 401)


# Other HTTP


@own
@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("extra", ["", "connection: keep-alive\r\n"])
async def test_a_client_of_http_1_0(it: Running, stream: bool, extra: str) -> None:
    async with wire(it.port) as one:
        one.send(post(asked(stream=stream), headers=extra, version="1.0"))
        answer = await one.answer()
        assert answer.status == 200
        assert "transfer-encoding" not in answer.headers
        assert answer.headers["connection"] == "close"
        assert answer.body == (b"".join(CHAT.frames) if stream else WHOLE)
        assert await one.closed() == b""


@own
async def test_a_client_of_http_1_0_is_not_told_to_go_on(it: Running) -> None:
    """It would take that for the answer."""
    async with wire(it.port) as one:
        one.send(post(asked(), headers="expect: 100-continue\r\n", version="1.0")[:-1])
        await asyncio.sleep(0.05)
        one.send(b"}")
        status, _ = await one.head()
        assert status == 200


@own
async def test_an_offer_of_http_2_is_passed_over(it: Running, backend: ScriptedBackend) -> None:
    """Java's client offers it with every first request; the next one must not hang."""
    offer = "connection: Upgrade, HTTP2-Settings\r\nupgrade: h2c\r\nhttp2-settings: AAEAAEAA\r\n"
    raw = post({**asked(), "x": " " * 50_000}, headers=offer)
    async with wire(it.port) as one:
        for size in (len(raw), 30_000, 100):
            for n in range(0, len(raw), size):
                one.send(raw[n : n + size])
                await asyncio.sleep(0)
            answer = await one.answer()
            assert (answer.status, answer.body) == (200, WHOLE)
        one.send(post(asked(stream=True)) + raw)
        assert (await one.answer()).body == b"".join(CHAT.frames)
        assert (await one.answer()).body == WHOLE
        one.send(post(asked(), headers=offer) * 3)
        for _ in range(3):
            assert (await one.answer()).body == WHOLE
    assert "upgrade" not in backend.requests[0].headers


@pytest.mark.parametrize(
    "headers",
    [
        "content-length: 2\r\ntransfer-encoding: chunked\r\n",
        "content-length: 2\r\ncontent-length: 3\r\n",
        "content-length: -1\r\n",
        "transfer-encoding: chunked, gzip\r\n",
        "x y: 1\r\n",
    ],
)
async def test_framing_that_two_parties_could_read_differently(
    it: Running, backend: ScriptedBackend, headers: str
) -> None:
    async with wire(it.port) as one:
        one.send(head(headers=headers) + b"{}")
        answer = await one.answer()
        assert answer.status == 400
        assert await one.closed() == b""
    assert not backend.requests


@own
async def test_a_chunk_that_is_none(it: Running, backend: ScriptedBackend) -> None:
    async with wire(it.port) as one:
        one.send(head(MESSAGES.path, "transfer-encoding: chunked\r\n") + b"zz\r\n{}")
        answer = await one.answer()
        assert answer.status == 400
        assert answer.json()["type"] == "error", "not the shape of the API"
        assert await one.closed() == b""
    record = await it.record()
    assert (record.status, record.outcome) == (400, Outcome.REJECTED)
    assert not backend.requests


async def test_nothing_that_is_http(it: Running) -> None:
    async with wire(it.port) as one:
        one.send(b"SSH-2.0-OpenSSH_9.2\r\n\r\n")
        answer = await one.answer()
        assert answer.status == 400
        assert await one.closed() == b""


@pytest.mark.parametrize("target", ["CONNECT x:443", "GET http://[::1/v1/models"])
@pytest.mark.parametrize("before", [0, 1])
async def test_a_target_that_is_none(it: Running, target: str, before: int) -> None:
    """Also behind a request, whose answer is over, it is refused as what it is."""
    async with wire(it.port) as one:
        for _ in range(before):
            one.send(post(asked()))
            assert (await one.answer()).body == WHOLE
        one.send(f"{target} HTTP/1.1\r\nhost: x\r\n\r\n".encode())
        assert (await one.answer()).status == 400
        assert await one.closed() == b""


@own
async def test_nagle_is_off_towards_clients(it: Running) -> None:
    async with wire(it.port) as one:
        one.send(post(asked()))
        await one.answer()
        protocols = list(it.server.server_state.connections)
        assert protocols
        for protocol in protocols:
            assert isinstance(protocol, HttpToolsProtocol)
            sock = protocol.transport.get_extra_info("socket")
            assert sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)
