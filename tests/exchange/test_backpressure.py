"""A client that does not read holds its own answers up, and nobody's memory but its own."""

from __future__ import annotations

import asyncio
import json
import socket
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from gateway.records import Outcome
from tests.support.apis import CHAT, Dialect
from tests.support.patience import SLACK
from tests.support.scripted import SSE_HEAD, Received, chunk, reply
from tests.support.site import Script, Site, answers, every_api, own, until
from tests.support.wire import post

pytestmark = pytest.mark.asyncio(loop_scope="module")


KERNEL = 14 * 2**20
"""Bytes that sockets between a backend and a client may hold, two of each kind."""


class Flood:
    """A stream of tokens as fast as they are taken; `sent` counts its bytes."""

    def __init__(self, dialect: Dialect, total: int = 2**40) -> None:
        self._dialect = dialect
        self._total = total
        self.sent = 0
        self.frames: list[bytes] = []

    async def __call__(self, request: Received, writer: asyncio.StreamWriter) -> None:
        writer.write(SSE_HEAD + chunk(b"".join(self._dialect.opening)))
        burst = self._dialect.tokens[0] * 400
        while self.sent < self._total:
            writer.write(chunk(burst))
            await writer.drain()
            self.sent += len(burst)
        writer.write(chunk(b"".join(self._dialect.ending)) + chunk(b""))


@asynccontextmanager
async def unread(port: int, room: int = 8192) -> AsyncIterator[socket.socket]:
    """A connection whose answers nobody reads, with little room for them."""
    loop = asyncio.get_running_loop()
    with socket.socket() as one:
        one.setblocking(False)
        one.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, room)
        await loop.sock_connect(one, ("127.0.0.1", port))
        yield one


async def send(one: socket.socket, data: bytes) -> None:
    await asyncio.get_running_loop().sock_sendall(one, data)


async def rest(one: socket.socket) -> int:
    """Reads what is left until the other side is gone; returns how much it was."""
    loop = asyncio.get_running_loop()
    size = 0
    try:
        async with asyncio.timeout(5):
            while data := await loop.sock_recv(one, 2**20):
                size += len(data)
    except ConnectionResetError:
        pass
    return size


async def standstill(flood: Flood) -> None:
    """Wait until no more is taken of it."""
    async with asyncio.timeout(10):
        before = -1
        while flood.sent != before or not flood.sent:
            before = flood.sent
            await asyncio.sleep(0.15)


def buffered(at: Site) -> int:
    """Bytes the gateway itself holds for its clients."""
    protocols = at.it.server.server_state.connections
    return sum(
        protocol.transport.get_write_buffer_size()
        for protocol in protocols
        if isinstance(protocol, HttpToolsProtocol)
    )


@own
@every_api
async def test_what_a_client_does_not_read_is_not_fetched(at: Site, dialect: Dialect) -> None:
    flood = Flood(dialect)
    at.play(flood)
    at.configure(keepalive_interval=0.05)
    async with unread(at.it.port) as one:
        await send(one, post(dialect.streamed, dialect.path))
        await standstill(flood)
        assert flood.sent < KERNEL
        assert buffered(at) < 2**20
        held = buffered(at)
        await asyncio.sleep(0.2)
        assert buffered(at) == held, "signs of life piled up behind a full buffer"
    await asyncio.wait_for(at.backends[0].requests[0].left.wait(), SLACK)
    assert (await at.record()).outcome is Outcome.CLIENT_GONE


@own
@every_api
async def test_a_client_that_stops_reading_is_dropped(at: Site, dialect: Dialect) -> None:
    flood = Flood(dialect)
    at.play(flood)
    at.configure(timeouts={"idle": 0.4})
    async with unread(at.it.port) as one:
        began = time.monotonic()
        await send(one, post(dialect.streamed, dialect.path))
        await asyncio.wait_for(_left(at), 5)
        assert time.monotonic() - began > 0.38
        record = await at.record()
        assert record.outcome is Outcome.CLIENT_GONE
        assert at.backend().outstanding == 0
        assert at.backend().circuit.closed
        if at.way == "protocol":  # others can only ask their server to close
            await until(lambda: not at.it.server.server_state.connections)
            await rest(one)


async def test_a_slow_client_gets_every_byte(at: Site) -> None:
    flood = Flood(CHAT, total=3 * 2**20)
    at.play(flood)
    at.configure(timeouts={"idle": 0.5})
    loop = asyncio.get_running_loop()
    received = bytearray()
    async with unread(at.it.port) as one:
        await send(one, post(CHAT.streamed, headers="connection: close\r\n"))
        while data := await loop.sock_recv(one, 2**17):
            received += data
            await asyncio.sleep(0.005)
    assert received.count(CHAT.tokens[0]) == flood.sent // len(CHAT.tokens[0])
    assert received.endswith(b"data: [DONE]\n\n\r\n0\r\n\r\n")
    record = await at.record()
    assert record.outcome is Outcome.OK
    assert record.usage is not None and record.usage.exact


async def test_a_slow_reader_is_not_a_slow_backend(at: Site) -> None:
    """The idle limit is not the backend's to keep while nobody asks it for more."""
    flood = Flood(CHAT, total=16 * 2**20)
    at.play(flood)
    at.configure(timeouts={"idle": 1.0})
    loop = asyncio.get_running_loop()
    async with unread(at.it.port) as one:
        await send(one, post(CHAT.streamed, headers="connection: close\r\n"))
        await standstill(flood)
        await asyncio.sleep(0.5)
        while await loop.sock_recv(one, 2**20):
            pass
    assert (await at.record()).outcome is Outcome.OK


SIZE = 9 * 2**20
LARGE = {**CHAT.reply, "x": "a" * SIZE}


def whole() -> Script:
    return _says(reply(json.dumps(LARGE).encode()))


def _says(data: bytes) -> Script:
    async def script(request: Received, writer: asyncio.StreamWriter) -> None:
        writer.write(data)

    return script


@own
async def test_a_whole_answer_that_is_not_read_is_dropped(at: Site) -> None:
    at.play(whole())
    at.configure(timeouts={"idle": 0.3})
    async with unread(at.it.port) as one:
        await send(one, post(CHAT.request))
        await at.record()
        assert buffered(at) > 2**20
        await until(lambda: not at.it.server.server_state.connections, within=3)
        assert await rest(one) < SIZE


@own
@pytest.mark.parametrize("close", ["", "connection: close\r\n"], ids=["kept", "closing"])
async def test_a_whole_answer_that_is_read_slowly_is_not_dropped(at: Site, close: str) -> None:
    at.play(whole())
    at.configure(timeouts={"idle": 0.15})
    loop = asyncio.get_running_loop()
    size = 0
    async with unread(at.it.port, room=2**17) as one:
        await send(one, post(CHAT.request, headers=close))
        began = time.monotonic()
        while size < SIZE:
            data = await loop.sock_recv(one, 2**18)
            assert data, f"dropped after {size} bytes"
            size += len(data)
            await asyncio.sleep(0.005)
        assert time.monotonic() - began > 0.3


@own
async def test_the_next_answer_waits_until_this_one_is_read(at: Site) -> None:
    """Pipelined requests of a client that reads nothing would each leave an answer behind."""
    at.play(whole())
    loop = asyncio.get_running_loop()
    async with unread(at.it.port, room=2**17) as one:
        await send(one, post(CHAT.request) * 3)
        await at.record()
        await asyncio.sleep(0.2)
        assert len(at.backends[0].requests) == 1
        assert buffered(at) < SIZE + 2**20
        size = 0
        async with asyncio.timeout(10):
            while size < 3 * SIZE:
                size += len(await loop.sock_recv(one, 2**20))
    assert len(at.backends[0].requests) == 3


@own
async def test_a_request_on_a_connection_whose_last_answer_is_unread(at: Site) -> None:
    flood = Flood(CHAT)

    async def script(request: Received, writer: asyncio.StreamWriter) -> None:
        streamed = json.loads(request.body).get("stream")
        await (flood if streamed else whole())(request, writer)

    at.play(script)
    at.configure(timeouts={"idle": 0.4})
    async with unread(at.it.port) as one:
        await send(one, post(CHAT.request))
        await at.record()
        await send(one, post(CHAT.streamed))
        await asyncio.sleep(0.2)
        assert flood.sent == 0
        await until(lambda: not at.it.server.server_state.connections, within=3)
    assert at.backend().outstanding == 0


async def test_others_are_served_meanwhile(at: Site) -> None:
    flood = Flood(CHAT)

    async def script(request: Received, writer: asyncio.StreamWriter) -> None:
        if len(at.backends[0].requests) == 1:
            await flood(request, writer)
        else:
            await answers(CHAT)(request, writer)

    at.play(script)
    async with unread(at.it.port) as one:
        await send(one, post(CHAT.streamed))
        await standstill(flood)
        for _ in range(3):
            assert (await at.ask(CHAT)).status_code == 200
    await at.record(4)


async def _left(at: Site) -> Any:
    await until(lambda: at.backends[0].requests)
    return await at.backends[0].requests[0].left.wait()
