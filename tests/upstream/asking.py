"""Requests on connections to a scripted backend, and where their replies go."""

from __future__ import annotations

import asyncio
from typing import Any

from gateway.errors import BackendFailed
from gateway.upstream.pool import Pool
from tests.support.scripted import Received, Script

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
