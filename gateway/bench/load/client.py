"""The load client: requests go out and every read of their replies is stamped; nothing is read.

What a reply says is found out when the round is over. Reading it while others stream would delay
their stamps, and the client would measure itself. It stands on the gateway's own connections to
backends, which parse HTTP in a few microseconds a read.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Self

from gateway.errors import BackendFailed
from gateway.upstream.connection import Connection, Headers, StaleConnection
from gateway.upstream.pool import Pool

IDLE = 16_384
"""Idle connections kept: no request of a round should pay for what an earlier one has opened."""


@dataclass(slots=True)
class Exchange:
    """One request and its reply as they happened; times are seconds of the client's clock.

    Attributes:
        due: when it should have left.
        late: seconds after `due` at which the client came to it, by its own fault.
        ready: when it had a connection.
        sent: when it was written.
        ended: when its reply was complete, or had failed.
        reads: when each read of the reply's body came, and its bytes.
        failure: what ended it early.
        timed_out: the client's patience ended it.
    """

    due: float
    late: float = 0.0
    ready: float | None = None
    sent: float | None = None
    ended: float | None = None
    status: int = 0
    headers: Headers = field(default_factory=list)
    reads: list[tuple[float, bytes]] = field(default_factory=list)
    failure: BackendFailed | None = None
    timed_out: bool = False

    @property
    def size(self) -> int:
        """Bytes of the reply that it holds."""
        return sum(len(data) for _, data in self.reads)


class _Sink:
    """Takes one reply as the connection tells it."""

    __slots__ = ("_clock", "_exchange", "answered")

    def __init__(self, exchange: Exchange, clock: Callable[[], float]) -> None:
        self._exchange = exchange
        self._clock = clock
        self.answered: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def on_head(self, status: int, headers: Headers) -> None:
        self._exchange.status = status
        self._exchange.headers = headers

    def on_data(self, data: bytes) -> None:
        self._exchange.reads.append((self._clock(), data))

    def on_end(self) -> None:
        self._exchange.ended = self._clock()
        if not self.answered.done():
            self.answered.set_result(None)

    def on_failure(self, error: BackendFailed) -> None:
        self._exchange.ended = self._clock()
        if not self.answered.done():
            self.answered.set_exception(error)


class LoadClient:
    """Sends requests to one route of one server.

    Args:
        url: where it stands; a path within it is kept in front of `path`.
        headers: lines of the request head that every request has, each with its CRLF.
        timeout: seconds a request may take in all.
        connect_timeout: seconds to open a connection.
        clock: monotonic seconds.
    """

    def __init__(
        self,
        url: str,
        path: str,
        headers: bytes,
        *,
        timeout: float,
        clock: Callable[[], float],
        connect_timeout: float = 10.0,
    ) -> None:
        self._pool = Pool(url, connect_timeout=min(connect_timeout, timeout), max_idle=IDLE)
        self._head = b"POST %b%b HTTP/1.1\r\n%b%baccept-encoding: identity\r\n" % (
            self._pool.target,
            path.encode(),
            self._pool.host_lines,
            headers + b"content-type: application/json\r\naccept: text/event-stream\r\n",
        )
        self._timeout = timeout
        self._clock = clock

    async def ask(
        self, body: bytes, due: float, headers: bytes = b"", late: float = 0.0
    ) -> Exchange:
        """Send one request and wait for the end of its reply; every failure is in the exchange.

        Args:
            headers: further lines of the head.
            late: seconds that its sender has lost already.
        """
        exchange = Exchange(due, late)
        request = (b"%b%bcontent-length: %d\r\n\r\n" % (self._head, headers, len(body)), body)
        try:
            async with asyncio.timeout(self._timeout):
                await self._send(request, exchange)
        except TimeoutError:
            exchange.timed_out = True
        except BackendFailed as error:
            exchange.failure = error
        exchange.ended = exchange.ended or self._clock()
        return exchange

    async def _send(self, request: tuple[bytes, bytes], exchange: Exchange) -> None:
        connection = self._pool.take()
        if connection is not None:
            try:
                await self._on(connection, request, exchange)
            except StaleConnection:
                exchange.sent = None
            else:
                return
        await self._on(await self._pool.connect(), request, exchange)

    async def _on(
        self, connection: Connection, request: tuple[bytes, bytes], exchange: Exchange
    ) -> None:
        exchange.ready = self._clock()
        sink = _Sink(exchange, self._clock)
        connection.send(request, sink)
        # After the write: its system call is part of what the client costs.
        exchange.sent = self._clock()
        try:
            await sink.answered
        except BaseException:
            # Also when its time is up: the server must not go on with what nobody reads.
            connection.cancel(sink)
            raise

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        self._pool.close()
