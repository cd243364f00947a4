"""The life of a connection: opened, reused, left by either side."""

from __future__ import annotations

import asyncio
import socket

import pytest

from gateway.errors import BackendFailed
from gateway.upstream.connection import Connection, StaleConnection
from tests.support.patience import SLACK
from tests.support.ports import deaf, nobody, rude
from tests.support.scripted import Received, reply, scripted
from tests.upstream.asking import REQUEST, Sink, answering, ask, pool_to


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


@pytest.mark.parametrize("stray", [b"HTTP/1.1 200 OK\r\n", reply(b"y")], ids=["begun", "whole"])
async def test_an_answer_nobody_asked_for_closes_the_connection(stray: bytes) -> None:
    async def script(request: Received, writer: asyncio.StreamWriter) -> None:
        writer.write(reply(b"x") + stray)

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
        await asyncio.wait_for(backend.gone.wait(), SLACK)


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


async def test_nagle_is_off() -> None:
    async with scripted(answering(reply(b"x"))) as backend:
        connection: Connection = await pool_to(backend.url).connect()
        assert connection._transport is not None
        sock = connection._transport.get_extra_info("socket")
        assert sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)
        connection.abort()


async def test_nothing_listening_and_no_answer_to_connect() -> None:
    with nobody() as url, pytest.raises(BackendFailed, match="cannot be reached"):
        await pool_to(url).connect()


async def test_connecting_is_bounded_in_time() -> None:
    with deaf() as url, pytest.raises(BackendFailed) as caught:
        await pool_to(url, connect_timeout=0.1).connect()
    assert caught.value.detail == "no connection within 0.1 s"
