"""One hot request on a connection: where its body gathers, and how it is answered."""

from __future__ import annotations

import asyncio
from typing import Any, Protocol

from uvicorn.protocols.http.flow_control import FlowControl
from uvicorn.protocols.http.httptools_impl import STATUS_LINE

from gateway.edge.handler import TOO_LARGE, Handler
from gateway.edge.paths import Endpoint
from gateway.errors import BadRequest, TooLarge
from gateway.exchange.context import Context
from gateway.exchange.reply import Headers

# Of a request that waits for its turn so much is read ahead: enough to go on reading behind most
# requests, since only that way a client's departure is noticed.
READ_AHEAD = 65536


class Carrier(Protocol):
    """The connection's protocol, as far as a cycle needs it; the upper part is uvicorn's."""

    transport: asyncio.Transport
    url: bytes
    headers: Headers
    scope: Any
    expect_100_continue: bool
    flow: FlowControl

    def on_response_complete(self) -> None: ...

    context: Context
    active: HotCycle | None

    def run(self, task: asyncio.Task[None]) -> None: ...
    def linger(self) -> None: ...
    def close(self) -> None: ...


class _Unawaited:
    """Stands where uvicorn keeps the event that wakes an ASGI `receive()`; nobody waits here."""

    def set(self) -> None: ...


class HotCycle:
    """One hot request on one connection: takes its body, and is the `Reply` it is answered by.

    The attributes up to `message_event` are those uvicorn reads of a RequestResponseCycle.
    """

    message_event = _Unawaited()

    def __init__(self, protocol: Carrier, endpoint: Endpoint, keep_alive: bool) -> None:
        self.response_complete = False
        self.disconnected = False
        self.more_body = True
        self.keep_alive = keep_alive
        self._protocol = protocol
        self._transport = protocol.transport
        self._chunked = False
        self._head = b""  # of the answer, until its first bytes
        self._body: list[bytes] = []
        self._body_bytes = 0
        self._refusal: BadRequest | None = None
        self._begun = False
        self._handler: Handler | None = Handler(
            protocol.context, endpoint, protocol.url, protocol.headers, reply=self
        )
        self._expects_continue = protocol.expect_100_continue
        self._http10 = protocol.scope["http_version"] == "1.0"

    # The request, as the protocol tells it

    def begin(self) -> None:
        """It is this request's turn on the connection."""
        if self._handler is None:
            return  # the client left before
        self._begun = True
        self._protocol.active = self
        if self._refusal is not None:
            self._handler.refuse(self._refusal)
        elif not self._handler.open():
            self._body.clear()
        elif not self.more_body:
            self._start()
        elif self._expects_continue:
            self._transport.write(b"HTTP/1.1 100 Continue\r\n\r\n")

    def feed(self, body: bytes) -> None:
        self._body_bytes += len(body)
        limit = self._protocol.context.settings.server.max_body_mib
        if self._body_bytes > limit * 2**20:
            self.refuse(TooLarge(TOO_LARGE.format(limit=limit)))
        elif self._handler is not None and self._refusal is None:
            self._body.append(body)
        if not self._begun and self._body_bytes > READ_AHEAD:
            self._protocol.flow.pause_reading()

    def complete(self) -> None:
        self.more_body = False
        if self._begun:
            self._start()

    def refuse(self, error: BadRequest) -> None:
        """Answer with an error, once it is this request's turn; its body is not wanted."""
        self._body.clear()
        self._refusal = self._refusal or error
        if self._begun and self._handler is not None:
            self._handler.refuse(error)

    def disconnect(self) -> None:
        self.disconnected = True
        if self._handler is not None:
            self._handler.client_gone()

    def pause(self) -> None:
        """The client reads slower than it is written to."""
        if self._handler is not None:
            self._handler.pause()

    def resume(self) -> None:
        if self._handler is not None:
            self._handler.resume()

    def _start(self) -> None:
        body = self._body[0] if len(self._body) == 1 else b"".join(self._body)
        self._body.clear()
        if self._handler is not None:
            self._protocol.run(self._handler.start(body))

    # The answer: exchange.reply.Reply

    def start(self, status: int, headers: Headers, length: int | None) -> None:
        if self.more_body:
            self.keep_alive = False  # what is left of the body cannot be told from a next request
        head = [STATUS_LINE[status]]
        for name, value in headers:
            head += (name, b": ", value, b"\r\n")
        if length is not None:
            head.append(b"content-length: %d\r\n" % length)
        elif self._http10:
            self.keep_alive = False
        else:
            self._chunked = True
            head.append(b"transfer-encoding: chunked\r\n")
        if not self.keep_alive or self._protocol.context.draining:
            self.keep_alive = False
            head.append(b"connection: close\r\n")
        head.append(b"\r\n")
        self._head = b"".join(head)

    def write(self, data: bytes) -> None:
        self._send(b"%x\r\n%b\r\n" % (len(data), data) if self._chunked else data)

    def finish(self, data: bytes) -> None:
        if not self._chunked:
            self._send(data)
        elif data:
            self._send(b"%x\r\n%b\r\n0\r\n\r\n" % (len(data), data))
        else:
            self._send(b"0\r\n\r\n")
        self._end()
        if self.keep_alive:
            self._protocol.on_response_complete()
        elif self.more_body:
            self._protocol.linger()
        else:
            self._protocol.close()

    def abort(self) -> None:
        self._end()
        self._transport.abort()

    def _send(self, data: bytes) -> None:
        """Write with the head, if it has not gone out: two writes would be two system calls here,
        and wake the client twice."""
        head, self._head = self._head, b""
        if not self._transport.is_closing():  # or the task that writes has yet to notice
            self._transport.write(head + data)

    def _end(self) -> None:
        self.response_complete = True
        self._protocol.active = None
        # The handler writes to this cycle: left whole, the circle would wait for the collector,
        # whose pauses would be in the other requests' time to first token.
        self._handler = None
