"""A small asyncio client that notes when bytes arrive; for what wrk cannot measure.

Used where streams must run to their end (paced), where requests leave at a fixed rate (added time
to first byte), and where a client misbehaves (`disconnect.py`).
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Coroutine, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar, cast

import uvloop

from benchmarks.workloads import PATH, headers, session_header

TOKEN = b'" token"'
END = b"0\r\n\r\n"
T = TypeVar("T")


@dataclass(slots=True)
class Reply:
    """One streamed reply as it arrived; times are `time.perf_counter()` seconds.

    Attributes:
        sent: when the request left.
        reads: when each piece with an event arrived.
        body: everything received, head and chunk framing included.
        complete: the last chunk arrived.
    """

    sent: float
    reads: list[float] = field(default_factory=list)
    body: bytearray = field(default_factory=bytearray)
    complete: bool = False

    @property
    def ok(self) -> bool:
        """A success, received whole."""
        return self.complete and self.body.startswith(b"HTTP/1.1 200") and b"[DONE]" in self.body

    @property
    def tokens(self) -> int:
        """Content events of the stub in it."""
        return self.body.count(TOKEN)

    @property
    def first_byte(self) -> float:
        """Seconds from sending the request to its first event."""
        return self.reads[0] - self.sent

    @property
    def gaps(self) -> list[float]:
        """Seconds between the pieces."""
        return [later - earlier for earlier, later in zip(self.reads, self.reads[1:], strict=False)]


class Connection(asyncio.Protocol):
    """One keep-alive connection, one request at a time."""

    def __init__(self) -> None:
        self.transport: asyncio.Transport | None = None
        self.reply: Reply | None = None
        self._finished: asyncio.Future[None] | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast(asyncio.Transport, transport)

    def data_received(self, data: bytes) -> None:
        reply = self.reply
        if reply is None:
            return
        reply.body += data
        if b"data: " in data:
            reply.reads.append(time.perf_counter())
        if data.endswith(END):
            reply.complete = True
            self._finish()

    def connection_lost(self, exc: Exception | None) -> None:
        self.transport = None
        self._finish()

    def send(self, request: bytes) -> Reply:
        """Send a request and return its reply, which fills as bytes arrive.

        Raises:
            ConnectionError: the proxy has closed the connection.
        """
        if self.transport is None:
            raise ConnectionError("the proxy closed a connection between requests")
        self.reply = Reply(sent=time.perf_counter())
        self._finished = asyncio.get_running_loop().create_future()
        self.transport.write(request)
        return self.reply

    async def ask(self, request: bytes) -> Reply:
        """Send a request and wait for the end of its reply, or of the connection."""
        reply = self.send(request)
        assert self._finished is not None
        await self._finished
        return reply

    def stall(self) -> None:
        """Read nothing from here on."""
        if self.transport is not None:
            self.transport.pause_reading()

    def close(self) -> None:
        """Leave, whatever is under way."""
        if self.transport is not None:
            self.transport.abort()

    def _finish(self) -> None:
        if self._finished is not None and not self._finished.done():
            self._finished.set_result(None)


async def connect(port: int) -> Connection:
    """A new connection to a proxy on the loopback."""
    loop = asyncio.get_running_loop()
    _, connection = await loop.create_connection(Connection, "127.0.0.1", port)
    return connection


def request(key: str, body: bytes, session: int) -> bytes:
    """The bytes of one POST."""
    fields = {
        "host": "127.0.0.1",
        **headers(key),
        **dict([session_header(session)]),
        "content-length": str(len(body)),
    }
    head = "".join(f"{name}: {value}\r\n" for name, value in fields.items())
    return f"POST {PATH} HTTP/1.1\r\n{head}\r\n".encode() + body


async def paced(
    connections: Sequence[Connection], requests: Sequence[bytes], repeats: int, spread: float
) -> list[Reply]:
    """Run `repeats` streams one after another on each connection.

    The connections start `spread` seconds apart from first to last, so that their events do not
    all fall due at one instant.
    """

    async def one(number: int, connection: Connection) -> list[Reply]:
        await asyncio.sleep(spread * number / len(connections))
        return [await connection.ask(requests[number % len(requests)]) for _ in range(repeats)]

    gathered = await asyncio.gather(*(one(n, c) for n, c in enumerate(connections)))
    return [reply for replies in gathered for reply in replies]


async def at_rate(port: int, requests: Sequence[bytes], rate: float, count: int) -> list[Reply]:
    """Send `count` requests at a fixed rate a second, whether or not earlier ones have ended."""
    idle: list[Connection] = []

    async def one(number: int) -> Reply:
        connection = idle.pop() if idle else await connect(port)
        reply = await connection.ask(requests[number % len(requests)])
        if reply.ok:
            idle.append(connection)
        return reply

    started = time.perf_counter()
    tasks = []
    for number in range(count):
        await asyncio.sleep(max(0.0, started + number / rate - time.perf_counter()))
        tasks.append(asyncio.create_task(one(number)))
    replies = await asyncio.gather(*tasks)
    for connection in idle:
        connection.close()
    return list(replies)


def run(main: Callable[[], Coroutine[Any, Any, T]], timeout: float = 180.0) -> T:
    """Run a coroutine on uvloop.

    Raises:
        TimeoutError: it took longer than `timeout` seconds: a proxy hangs.
    """

    async def bounded() -> T:
        async with asyncio.timeout(timeout):
            return await main()

    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        return runner.run(bounded())
