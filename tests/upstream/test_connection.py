from __future__ import annotations

import asyncio
import socket
from typing import Any

import pytest

from gateway.errors import BackendFailed
from gateway.upstream.connection import Connection, StaleConnection
from gateway.upstream.pool import Pool
from tests.support.ports import rude
from tests.support.scripted import Received, Script, chunk, reply, scripted

REQUEST = (b"POST /v1/x HTTP/1.1\r\nhost: b\r\ncontent-length: 2\r\n\r\n", b"{}")


class Sink:
    """Collects one reply."""

    def __init__(self) -> None:
        self.status = 0
        self.headers: list[tuple[bytes, bytes]] = []
        self.reads: list[bytes] = []
        self.done: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def on_head(self, status: int, headers: list[tuple[bytes, bytes]]) -> None:
        self.status, self.headers = status, headers

    def on_data(self, data: bytes) -> None:
        self.reads.append(data)

    def on_end(self) -> None:
        self.done.set_result(None)

    def on_failure(self, error: BackendFailed) -> None:
        self.done.set_exception(error)


async def ask(pool: Pool) -> Sink:
    connection = pool.take() or await pool.connect()
    sink = Sink()
    connection.send(REQUEST, sink)
    await asyncio.wait_for(sink.done, 5)
    return sink


def pool_to(url: str, **options: Any) -> Pool:
    return Pool(url, **{"connect_timeout": 2.0, **options})


def answering(data: bytes, *, close: bool = False) -> Script:
    async def script(request: Received, writer: asyncio.StreamWriter) -> None:
        writer.write(data)
        if close:
            await writer.drain()
            writer.close()

    return script


@pytest.mark.parametrize(
    ("raw", "body"),
    [
        (reply(b'{"a":1}'), b'{"a":1}'),
        (b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n" + chunk(b"ab") + chunk(b"c")
         + chunk(b""), b"abc"),
        (b"HTTP/1.1 204 No Content\r\n\r\n", b""),
        (b"HTTP/1.1 103 Early Hints\r\nlink: x\r\n\r\n" + reply(b"late"), b"late"),
    ],
    ids=["content-length", "chunked", "no-content", "after an interim reply"],
)  # fmt: skip
async def test_a_reply_is_read_and_the_connection_serves_the_next_request(
    raw: bytes, body: bytes
) -> None:
    async with scripted(answering(raw)) as backend:
        pool = pool_to(backend.url)
        for _ in range(5):
            sink = await ask(pool)
            assert b"".join(sink.reads) == body
        assert backend.connections == 1, "the connection was not reused"
        assert pool.opened == 1 and pool.idle == 1
        pool.close()


async def test_a_body_without_a_length_ends_with_the_connection() -> None:
    raw = b"HTTP/1.1 200 OK\r\ncontent-type: x\r\n\r\nuntil the end"
    async with scripted(answering(raw, close=True)) as backend:
        sink = await ask(pool_to(backend.url))
        assert b"".join(sink.reads) == b"until the end"


async def test_chunks_that_came_in_one_read_are_handed_on_together() -> None:
    """A burst of 50 small chunks must not cost 50 calls."""
    raw = b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n"
    raw += b"".join(chunk(b"data: %d\n\n" % n) for n in range(50)) + chunk(b"")
    async with scripted(answering(raw)) as backend:
        pool = pool_to(backend.url)
        sink = await ask(pool)
        assert len(sink.reads) <= 2
        assert b"".join(sink.reads).count(b"data: ") == 50
        pool.close()


@pytest.mark.parametrize(
    ("raw", "says"),
    [
        (b"HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\nshort", "connection lost"),
        (b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n5\r\nab", "connection lost"),
        (b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nzz\r\n", "malformed reply"),
        (b"SSH-2.0-OpenSSH_9.2\r\n\r\n", "malformed reply"),
        (b"HTTP/1.1 200 OK\r\nx: " + b"a" * 70_000, "reply head longer than 65536 bytes"),
        (b"", "connection lost"),
    ],
    ids=["cut", "cut chunk", "bad chunk", "not HTTP", "oversized head", "nothing"],
)  # fmt: skip
async def test_a_bad_reply_fails_and_its_connection_is_not_reused(raw: bytes, says: str) -> None:
    async with scripted(answering(raw, close=True)) as backend:
        pool = pool_to(backend.url)
        with pytest.raises(BackendFailed) as caught:
            await ask(pool)
        assert says in (caught.value.detail or "")
        assert "127.0.0.1" not in caught.value.message, "the client must not learn the backend"
        assert pool.idle == 0


async def test_an_endless_head_is_cut_off_at_the_limit() -> None:
    async def script(request: Received, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\n")
        while True:
            writer.write(b"x-filler: aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa\r\n" * 50)
            await writer.drain()

    async with scripted(script) as backend:
        with pytest.raises(BackendFailed) as caught:
            await ask(pool_to(backend.url))
        assert caught.value.detail == "reply head longer than 65536 bytes"
        await asyncio.wait_for(backend.gone.wait(), 2)


async def test_an_idle_connection_closed_by_the_backend_leaves_the_pool() -> None:
    async def script(request: Received, writer: asyncio.StreamWriter) -> None:
        writer.write(reply(b"x"))
        await writer.drain()
        await asyncio.sleep(0.05)
        writer.close()

    async with scripted(script) as backend:
        pool = pool_to(backend.url)
        await ask(pool)
        assert pool.idle == 1
        await asyncio.sleep(0.15)
        assert pool.idle == 0 and pool.take() is None


async def test_closing_a_reused_connection_without_an_answer_is_told_apart() -> None:
    """The race of keep-alive: the backend closes as the next request is on its way."""

    async def script(request: Received, writer: asyncio.StreamWriter) -> None:
        if len(backend.requests) == 1:
            writer.write(reply(b"x"))
        else:
            writer.close()

    async with scripted(script) as backend:
        pool = pool_to(backend.url)
        await ask(pool)
        with pytest.raises(StaleConnection):
            await ask(pool)


async def test_an_answer_nobody_asked_for_closes_the_connection() -> None:
    async def script(request: Received, writer: asyncio.StreamWriter) -> None:
        writer.write(reply(b"x") + b"HTTP/1.1 200 OK\r\n")

    async with scripted(script) as backend:
        pool = pool_to(backend.url)
        sink = await ask(pool)
        assert sink.reads == [b"x"]
        assert pool.idle == 0, "its next request would be given the stray bytes"


async def test_cancelling_closes_at_once_but_never_a_connection_that_moved_on() -> None:
    async def script(request: Received, writer: asyncio.StreamWriter) -> None:
        if len(backend.requests) > 1:
            await asyncio.sleep(30)
        writer.write(reply(b"x"))

    async with scripted(script) as backend:
        pool = pool_to(backend.url)
        first = await ask(pool)
        connection = pool.take()
        assert connection is not None
        second = Sink()
        connection.send(REQUEST, second)
        connection.cancel(first)
        await asyncio.sleep(0.05)
        assert connection.is_usable(), "the first exchange cancelled the second one's connection"
        connection.cancel(second)
        await asyncio.wait_for(backend.gone.wait(), 0.5)


async def test_a_connection_that_was_lost_before_its_first_request() -> None:
    """Port forwarders accept, and close once they find nothing to forward to."""
    async with rude(reset=False) as url:
        connection = await pool_to(url).connect()
        while connection.is_usable():
            await asyncio.sleep(0.005)
        sink = Sink()
        connection.send(REQUEST, sink)
        with pytest.raises(BackendFailed) as caught:
            await sink.done
        assert caught.value.detail == "connection lost: closed at once"
        assert not isinstance(caught.value, StaleConnection)


async def test_a_trailer_without_end_is_cut_off_at_the_limit() -> None:
    async def script(request: Received, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n" + chunk(b"x"))
        writer.write(b"0\r\n")
        while True:
            writer.write(b"x-filler: aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa\r\n" * 50)
            await writer.drain()

    async with scripted(script) as backend:
        with pytest.raises(BackendFailed) as caught:
            await ask(pool_to(backend.url))
        assert caught.value.detail == "reply trailer longer than 65536 bytes"
        await asyncio.wait_for(backend.gone.wait(), 2)


async def test_a_long_body_in_small_chunks_is_no_endless_trailer() -> None:
    """The framing of chunks counts only from one piece of the body to the next."""

    async def script(request: Received, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n")
        for _ in range(60):
            writer.write(b"1;" + b"x" * 2000 + b"\r\n")
            await writer.drain()
            await asyncio.sleep(0.001)
            writer.write(b"a\r\n")
        writer.write(chunk(b""))

    async with scripted(script) as backend:
        pool = pool_to(backend.url)
        sink = await ask(pool)
        assert b"".join(sink.reads) == b"a" * 60
        pool.close()


@pytest.mark.parametrize("ends", [True, False])
async def test_a_reply_that_is_over_but_for_its_framing(ends: bool) -> None:
    """Its connection serves again if the framing comes, and closes if it does not."""

    async def script(request: Received, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n" + chunk(b"all"))
        await writer.drain()
        await asyncio.sleep(0.05 if ends else 30)
        writer.write(chunk(b""))

    async with scripted(script) as backend:
        pool = pool_to(backend.url)
        connection = await pool.connect()
        sink = Sink()
        connection.send(REQUEST, sink)
        while not sink.reads:
            await asyncio.sleep(0.005)
        connection.let_end(sink, 0.2)
        assert pool.idle == 0
        if ends:
            await asyncio.wait_for(sink.done, 1)
            assert pool.idle == 1
            await asyncio.sleep(0.25)
            assert pool.idle == 1 and connection.is_usable(), "closed though its reply had ended"
            pool.close()
        else:
            await asyncio.wait_for(backend.gone.wait(), 1)
            assert pool.idle == 0 and not connection.is_usable()


async def test_nagle_is_off() -> None:
    async with scripted(answering(reply(b"x"))) as backend:
        connection: Connection = await pool_to(backend.url).connect()
        assert connection._transport is not None
        sock = connection._transport.get_extra_info("socket")
        assert sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)
        connection.abort()


async def test_nothing_listening_and_no_answer_to_connect() -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        port = unused.getsockname()[1]
    with pytest.raises(BackendFailed, match="cannot be reached"):
        await pool_to(f"http://127.0.0.1:{port}").connect()


async def test_connecting_is_bounded_in_time() -> None:
    """A listener whose backlog is full neither accepts nor refuses."""
    with socket.socket() as deaf:
        deaf.bind(("127.0.0.1", 0))
        deaf.listen(0)
        port = deaf.getsockname()[1]
        fillers = [socket.socket() for _ in range(3)]
        for filler in fillers:
            filler.setblocking(False)
            filler.connect_ex(("127.0.0.1", port))
        try:
            with pytest.raises(BackendFailed) as caught:
                await pool_to(f"http://127.0.0.1:{port}", connect_timeout=0.1).connect()
            assert caught.value.detail == "no connection within 0.1 s"
        finally:
            for filler in fillers:
                filler.close()
