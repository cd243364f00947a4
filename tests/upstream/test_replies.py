"""Replies read to their end, however they are framed, and those that have none."""

from __future__ import annotations

import asyncio

import pytest

from gateway.errors import BackendFailed
from tests.support.scripted import Received, chunk, reply, scripted
from tests.upstream.asking import REQUEST, Sink, answering, ask, pool_to


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


async def test_an_interim_reply_says_nothing_of_the_length() -> None:
    interim = b"HTTP/1.1 103 Early Hints\r\ncontent-length: 5\r\n\r\n"
    raw = interim + b"HTTP/1.1 200 OK\r\n\r\nuntil the end"
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
