"""uvicorn on a free port of the loopback address, without the tenths of a second that it sleeps.

Its own loop looks ten times a second whether it should end, and its end sleeps once more. Nearly
every test takes less than that.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import asynccontextmanager, contextmanager

import uvicorn

START = 10.0
END = 20.0
"""Seconds that either may take on a busy machine."""


@asynccontextmanager
async def served(config: uvicorn.Config) -> AsyncIterator[tuple[uvicorn.Server, int]]:
    """The server, once it answers, and its port.

    Raises:
        TimeoutError: in the end a connection is left open.
    """
    config.load()
    server = uvicorn.Server(config)
    server.lifespan = config.lifespan_class(config)
    with socket.create_server(("127.0.0.1", 0)) as listener:
        await server.startup(sockets=[listener])
        await server.on_tick(0)  # sets the headers that all replies have
        try:
            yield server, listener.getsockname()[1]
        finally:
            await _end(server)


async def _end(server: uvicorn.Server) -> None:
    for listening in server.servers:
        listening.close()
    async with asyncio.timeout(END):
        while server.server_state.connections or server.server_state.tasks:
            await asyncio.sleep(0.001)
    await server.lifespan.shutdown()


@contextmanager
def served_beside(config: uvicorn.Config) -> Iterator[int]:
    """The port of such a server in a thread of its own."""
    loop = asyncio.new_event_loop()
    over = asyncio.Event()
    port: Future[int] = Future()

    async def serve() -> None:
        async with served(config) as (_, number):
            port.set_result(number)
            await over.wait()

    with ThreadPoolExecutor(1) as thread:
        serving = thread.submit(loop.run_until_complete, serve())
        try:
            yield port.result(START)
        finally:
            loop.call_soon_threadsafe(over.set)
            serving.result()
    loop.close()
