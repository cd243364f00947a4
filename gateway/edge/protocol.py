"""Hot routes answered inside uvicorn's HTTP protocol, with no ASGI call between.

uvicorn parses, keeps connections alive, pipelines and shuts down; a hot request only replaces
its request/response cycle by a `HotCycle`. The names of uvicorn this rests on are listed and
checked in tests/edge/test_uvicorn_contract.py, so that a new uvicorn fails there first.

uvicorn bounds neither the size nor the time of a request head or body; both are bounded here, for
every route.
"""

from __future__ import annotations

import asyncio
from enum import Enum, auto
from typing import TYPE_CHECKING, Any, cast

from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol

from gateway.edge.cycle import HotCycle
from gateway.edge.handler import TOO_LARGE
from gateway.edge.paths import HotPaths
from gateway.errors import BadRequest, HeadersTooLarge, RequestTimeout, TooLarge
from gateway.exchange.context import Context
from gateway.protocols import faults
from gateway.records import Api

if TYPE_CHECKING:
    from uvicorn._types import ASGI3Application
    from uvicorn.protocols.http.httptools_impl import RequestResponseCycle

HEAD_TOO_SLOW = "The request head did not arrive within {seconds:g} s."
BODY_TOO_SLOW = "The request body did not arrive within {seconds:g} s."
HEAD_TOO_LARGE = "The request head is larger than the {limit} KiB this gateway accepts."
# How long to go on reading what a refused client still sends, so that it gets to read the answer
# instead of a connection reset.
LINGER = 2.0


class Part(Enum):
    """What of a request has yet to arrive."""

    HEAD = auto()
    BODY = auto()
    DONE = auto()


class GatewayProtocol(HttpToolsProtocol):
    """uvicorn's protocol with hot routes and with limits on request heads and bodies.

    Args:
        context: the parts of the gateway in force.
        paths: which targets are hot.
        uvicorn: what uvicorn passes to a protocol class.
    """

    def __init__(self, context: Context, paths: HotPaths, **uvicorn: Any) -> None:
        super().__init__(**uvicorn)
        self.context = context
        self._paths = paths
        self._part = Part.HEAD
        self._head_bytes = 0
        self._body_bytes = 0
        self._deadline: asyncio.TimerHandle | None = None
        # The hot request whose turn it is; `cycle` is the one parsed last, which with pipelining
        # is another.
        self.active: HotCycle | None = None

    # Limits

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._start_clock()

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        if self._part is Part.HEAD:
            self._head_bytes += len(data)
            limit = self.context.settings.server.max_header_kib
            if self._head_bytes > limit * 1024:
                self._reject(HeadersTooLarge(HEAD_TOO_LARGE.format(limit=limit)))
                return
        # A request that came whole in one read, as most do, never starts the clock.
        if self._part is not Part.DONE and self._deadline is None:
            self._start_clock()

    def on_message_begin(self) -> None:
        super().on_message_begin()
        self._part = Part.HEAD
        self._head_bytes = self._body_bytes = 0

    def _start_clock(self) -> None:
        server = self.context.settings.server
        if self._part is Part.HEAD:
            self._deadline = self.loop.call_later(server.header_timeout, self._head_too_slow)
        else:
            self._deadline = self.loop.call_later(server.body_timeout, self._body_too_slow)

    def _stop_clock(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None

    def _head_too_slow(self) -> None:
        if not self._head_bytes:
            self.transport.close()  # opened and never used: there is nothing to answer
            return
        seconds = self.context.settings.server.header_timeout
        self._reject(RequestTimeout(HEAD_TOO_SLOW.format(seconds=seconds)))

    def _body_too_slow(self) -> None:
        seconds = self.context.settings.server.body_timeout
        error = RequestTimeout(BODY_TOO_SLOW.format(seconds=seconds))
        if isinstance(self.cycle, HotCycle):
            self.cycle.refuse(error)
        else:
            self._reject(error)

    def _reject(self, error: BadRequest) -> None:
        """Answer what cannot be handled as a request, and close."""
        if self.transport.is_closing():
            return
        body = faults.body(Api.OTHER, error, self.context.new_id())
        head = b"content-type: application/json\r\ncontent-length: %d\r\nconnection: close\r\n\r\n"
        self.transport.write(STATUS_LINE[error.status] + head % len(body) + body)
        self.transport.close()

    def send_400_response(self, msg: str) -> None:
        self._reject(BadRequest(msg))

    def _unsupported_upgrade_warning(self) -> None:
        """Clients that try WebSockets first are told 426 by the application; no news for a log."""

    # Requests

    def on_headers_complete(self) -> None:
        self._part = Part.BODY
        self._stop_clock()
        hot = self.parser.get_method() == b"POST" and not self.parser.should_upgrade()
        endpoint = self._paths.find(self.url) if hot else None
        if endpoint is None:
            super().on_headers_complete()
            return
        version = self.parser.get_http_version()
        self.scope["http_version"] = version
        keep_alive = version != "1.0" and self.parser.should_keep_alive()
        existing = self.cycle
        cycle = HotCycle(self, endpoint, keep_alive)
        self.cycle = cast("RequestResponseCycle", cycle)
        if existing is None or existing.response_complete:
            cycle.begin()
        else:
            self.flow.pause_reading()
            self.pipeline.appendleft((self.cycle, self.app))

    def on_body(self, body: bytes) -> None:
        if isinstance(self.cycle, HotCycle):
            self.cycle.feed(body)
            return
        self._body_bytes += len(body)
        limit = self.context.settings.server.max_body_mib
        if self._body_bytes > limit * 2**20:
            self._reject(TooLarge(TOO_LARGE.format(limit=limit)))
        else:
            super().on_body(body)

    def on_message_complete(self) -> None:
        self._part = Part.DONE
        self._stop_clock()
        if isinstance(self.cycle, HotCycle):
            if self.cycle.response_complete:
                self.transport.close()  # lingered until the refused body was through
            else:
                self.cycle.complete()
        else:
            super().on_message_complete()

    def _start_asgi_task(self, cycle: RequestResponseCycle, app: ASGI3Application) -> None:
        if isinstance(cycle, HotCycle):
            cycle.begin()  # a pipelined request whose turn has come
        else:
            super()._start_asgi_task(cycle, app)

    def run(self, task: asyncio.Task[None]) -> None:
        """Keep a task where uvicorn looks for those it must wait for at shutdown."""
        self.tasks.add(task)
        task.add_done_callback(self.tasks.discard)

    def linger(self) -> None:
        """Read on for a while, then close."""
        self._stop_clock()
        self._deadline = self.loop.call_later(LINGER, self.transport.close)

    # The connection

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop_clock()
        for cycle in (self.active, *(waiting for waiting, _ in self.pipeline)):
            if isinstance(cycle, HotCycle):
                cycle.disconnect()
        super().connection_lost(exc)

    def pause_writing(self) -> None:
        super().pause_writing()
        if self.active is not None:
            self.active.pause()

    def resume_writing(self) -> None:
        super().resume_writing()
        if self.active is not None:
            self.active.resume()
