"""Hot routes answered inside uvicorn's HTTP protocol, with no ASGI call between.

uvicorn parses, keeps connections alive, pipelines and shuts down; a hot request only replaces
its request/response cycle by a `HotCycle`. The names of uvicorn this rests on are listed and
checked in tests/edge/test_uvicorn_contract.py, so that a new uvicorn fails there first.

uvicorn bounds neither the size nor the time of a request head or body; both are bounded here, for
every route.
"""

from __future__ import annotations

import asyncio
import socket
import sys
from enum import Enum, auto
from typing import TYPE_CHECKING, Any, cast

import httptools
from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol

from gateway.edge.cycle import HotCycle
from gateway.edge.handler import BODY_TOO_SLOW, TOO_LARGE
from gateway.edge.paths import HotPaths
from gateway.errors import BadRequest, HeadersTooLarge, RequestTimeout, TooLarge
from gateway.exchange.context import Context
from gateway.protocols import faults
from gateway.records import Api

if TYPE_CHECKING:
    from uvicorn._types import ASGI3Application
    from uvicorn.protocols.http.httptools_impl import RequestResponseCycle

HEAD_TOO_SLOW = "The request head did not arrive within {seconds:g} s."
HEAD_TOO_LARGE = "The request head is larger than the {limit} KiB this gateway accepts."
NOT_HTTP = "This is not valid HTTP/1.1; check the base URL, its http or https, and the proxy."
TOO_MANY = "At most {limit} requests may wait on one connection; wait for answers, or open more."
# How long to go on reading what a refused client still sends, so that it gets to read the answer
# instead of a connection reset.
LINGER = 2.0
# One read holds thousands of small requests, each of which costs kilobytes to remember.
MAX_QUEUED = 64
# Smaller than any limit for heads can be: a read of this size needs no look at its head.
SMALL_READ = 1024
OFFER = (b"connection", b"upgrade", b"http2-settings")


class Refused(Exception):
    """Ends the parsing of a connection: what follows on it is not looked at."""


class Part(Enum):
    """What of a request has yet to arrive."""

    HEAD = auto()
    BODY = auto()
    DONE = auto()
    OVER = auto()  # nothing: the connection was refused, and what still comes is dropped


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
        self._read = b""
        self._began = False  # the read holds the beginning of a head
        self._passed_over = False  # the head asks for a protocol that is not spoken here
        self._deadline: asyncio.TimerHandle | None = None
        # The hot request whose turn it is; `cycle` is the one parsed last, which with pipelining
        # is another.
        self.active: HotCycle | None = None
        self._asgi: RequestResponseCycle | None = None  # the last one whose turn has come
        self._held = False  # the last answer is complete, but the client has yet to read it
        self._unread: asyncio.TimerHandle | None = None

    # Limits

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # TCP has no other
        super().connection_made(transport)
        sock = transport.get_extra_info("socket")
        if sock is not None and sock.family != socket.AF_UNIX:
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._start_clock()

    def data_received(self, data: bytes) -> None:
        if self._part is Part.OVER:
            return
        self._read = data
        self._began = False
        super().data_received(data)
        self._read = b""
        if self._part is Part.HEAD:
            # The read in which a head begins may hold much that came before it.
            self._head_bytes += 1 if self._began else len(data)
            limit = self.context.settings.server.max_header_kib
            if self._head_bytes > limit * 1024:
                self._refuse_next(HeadersTooLarge(HEAD_TOO_LARGE.format(limit=limit)))
                return
        # A request that came whole in one read, as most do, never starts the clock.
        if self._part is not Part.DONE and self._deadline is None:
            self._start_clock()

    def on_message_begin(self) -> None:
        super().on_message_begin()
        self._part = Part.HEAD
        self._head_bytes = self._body_bytes = 0
        self._began = True

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
        if self._answering():
            self._start_clock()  # an answer is under way, and what comes behind it can wait
        elif not self._head_bytes:
            self.transport.close()  # opened and never used: there is nothing to answer
        else:
            seconds = self.context.settings.server.header_timeout
            self._reject(RequestTimeout(HEAD_TOO_SLOW.format(seconds=seconds)))

    def _body_too_slow(self) -> None:
        if self.pipeline:
            return  # reading may be paused until its turn comes, which starts the clock anew
        seconds = self.context.settings.server.body_timeout
        self._refuse_body(RequestTimeout(BODY_TOO_SLOW.format(seconds=seconds)))

    def _answering(self) -> bool:
        return self.cycle is not None and not self.cycle.response_complete

    def _refuse_next(self, error: BadRequest) -> None:
        """Refuse what comes behind the requests so far; their answers are not disturbed."""
        if self._answering():
            self.cycle.keep_alive = False
        else:
            self._reject(error)

    def _refuse_body(self, error: BadRequest) -> None:
        """Refuse the request whose body is being read."""
        if isinstance(self.cycle, HotCycle):
            self.cycle.refuse(error)
        elif self.pipeline or self.cycle.response_started:
            self.transport.close()  # there is no place for an answer
        else:
            self._reject(error)
            _disconnect(self.cycle)

    def _check_head(self) -> None:
        """Raises Refused: too much of a head, or too many requests."""
        server = self.context.settings.server
        size = len(self.url) + sum(len(name) + len(value) + 4 for name, value in self.headers)
        if size > server.max_header_kib * 1024:
            limit = server.max_header_kib
            self._refuse_next(HeadersTooLarge(HEAD_TOO_LARGE.format(limit=limit)))
            raise Refused
        if len(self.pipeline) >= MAX_QUEUED:
            self._refuse_next(BadRequest(TOO_MANY.format(limit=MAX_QUEUED)))
            raise Refused

    def _reject(self, error: BadRequest) -> None:
        """Answer what cannot be handled as a request, and close."""
        if self._part is Part.OVER or self.transport.is_closing():
            return
        self._part = Part.OVER
        body = faults.body(Api.OTHER, error, self.context.new_id())
        head = b"content-type: application/json\r\ncontent-length: %d\r\nconnection: close\r\n\r\n"
        self.transport.write(STATUS_LINE[error.status] + head % len(body) + body)
        self.linger()

    def send_400_response(self, msg: str) -> None:
        if self._part is Part.BODY:
            self._refuse_body(BadRequest(NOT_HTTP))
        else:
            self._refuse_next(BadRequest(NOT_HTTP))

    def _unsupported_upgrade_warning(self) -> None:
        """The parser has stopped behind a head that asks to upgrade.

        A WebSocket is refused by the application. Another offer, as Java's client makes one of
        HTTP/2 with every first request, is no reason not to answer (RFC 9110 §7.8): since the
        parser leaves out the body of such a request, it gets to read it again without the offer.
        """
        if not self._passed_over:
            return
        self._passed_over = False
        stopped = sys.exception()
        assert isinstance(stopped, httptools.HttpParserUpgrade)
        lines = [b"%b %b HTTP/1.1" % (self.parser.get_method(), self.url)]
        lines += [b"%b: %b" % header for header in self.headers if header[0] not in OFFER]
        self.parser = httptools.HttpRequestParser(self)
        self.parser.set_dangerous_leniencies(lenient_data_after_close=True)
        # Another offer may follow in the same read: its place is counted in what is read anew.
        self._read = b"\r\n".join((*lines, b"", self._read[stopped.args[0] :]))
        super().data_received(self._read)

    # Requests

    def on_header(self, name: bytes, value: bytes) -> None:
        # A trailer is no header: it comes when everything has been decided, and without a bound.
        if self._part is Part.HEAD:
            super().on_header(name, value)

    def on_headers_complete(self) -> None:
        if self.pipeline or len(self._read) + self._head_bytes > SMALL_READ:
            self._check_head()
        if self.parser.should_upgrade() and self._get_upgrade() not in (None, b"websocket"):
            self._passed_over = True
            return
        hot = self.parser.get_method() == b"POST" and not self.parser.should_upgrade()
        endpoint = self._paths.find(self.url) if hot else None
        if endpoint is None:
            # Raises where the target is none: uvicorn does so too late, when what comes is taken
            # for the body of a request that has begun, and that is the one before.
            httptools.parse_url(self.url)
        self._part = Part.BODY
        self._stop_clock()
        version = self.parser.get_http_version()
        if version == "1.0":
            self.expect_100_continue = False  # it knows no interim replies (RFC 9110 §10.1.1)
        if endpoint is None:
            super().on_headers_complete()
            if self.pipeline:
                self.flow.resume_reading()  # or the client's departure would not be noticed
            else:
                self._held = False  # it was not held up, so its own end passes the turn on
            return
        self.scope["http_version"] = version
        keep_alive = version != "1.0" and self.parser.should_keep_alive()
        existing = self.cycle
        cycle = HotCycle(self, endpoint, keep_alive)
        self.cycle = cast("RequestResponseCycle", cycle)
        if (existing is None or existing.response_complete) and not self._held:
            cycle.begin()
        else:
            self.pipeline.appendleft((self.cycle, self.app))

    def on_body(self, body: bytes) -> None:
        if isinstance(self.cycle, HotCycle):
            self.cycle.feed(body)
            return
        self._body_bytes += len(body)
        limit = self.context.settings.server.max_body_mib
        if self._body_bytes > limit * 2**20:
            self._refuse_body(TooLarge(TOO_LARGE.format(limit=limit)))
        else:
            super().on_body(body)

    def on_message_complete(self) -> None:
        if self._passed_over:
            return
        self._part = Part.DONE
        self._stop_clock()
        if isinstance(self.cycle, HotCycle):
            if self.cycle.response_complete:
                self.close()  # lingered until the refused body was through
            else:
                self.cycle.complete()
        else:
            super().on_message_complete()

    def _start_asgi_task(self, cycle: RequestResponseCycle, app: ASGI3Application) -> None:
        if isinstance(cycle, HotCycle):
            # A pipelined request whose turn has come, within the end of the one before it.
            self.active = cycle
            self.loop.call_soon(cycle.begin)
        else:
            self._asgi = cycle
            super()._start_asgi_task(cycle, app)
        if self._part is Part.BODY and cycle is self.cycle:
            self._stop_clock()
            self._start_clock()

    def run(self, task: asyncio.Task[None]) -> None:
        """Keep a task where uvicorn looks for those it must wait for at shutdown."""
        self.tasks.add(task)
        task.add_done_callback(self.tasks.discard)

    def linger(self) -> None:
        """Say that this was all, read on for a while, then close."""
        self._stop_clock()
        if self.transport.can_write_eof():
            self.transport.write_eof()
        self._deadline = self.loop.call_later(LINGER, self.close)

    # The connection

    def on_response_complete(self) -> None:
        """Pass the turn on to the next request, once the client has read this answer.

        Answers to a client that reads nothing would otherwise pile up, one for each request.
        """
        if self.flow.write_paused:
            self._held = True
            self._watch_reader()
        else:
            super().on_response_complete()

    def close(self) -> None:
        """Close once the client has read what was written, or has stopped reading it."""
        self.transport.close()
        self._watch_reader()

    def timeout_keep_alive_handler(self) -> None:
        self.close()

    def _watch_reader(self, before: int = sys.maxsize) -> None:
        """Drop a client that reads nothing of an answer for as long as a stream may be idle."""
        unread = self.transport.get_write_buffer_size()
        if unread >= before:
            self.transport.abort()
        elif unread:
            idle = self.context.settings.timeouts.idle
            self._unread = self.loop.call_later(idle, self._watch_reader, unread)

    def _stop_watching(self) -> None:
        if self._unread is not None:
            self._unread.cancel()
            self._unread = None

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop_clock()
        self._stop_watching()
        for cycle in (self.active, *(waiting for waiting, _ in self.pipeline)):
            if isinstance(cycle, HotCycle):
                cycle.disconnect()
        if self._asgi is not None:
            _disconnect(self._asgi)  # uvicorn does so for the one parsed last
            self._asgi = None
        super().connection_lost(exc)
        # It holds this, and only the collector would free the two. Nothing comes after this.
        self.cycle = None  # type: ignore[assignment]  # never None to uvicorn, see above

    def pause_writing(self) -> None:
        super().pause_writing()
        if self.active is not None:
            self.active.pause()

    def resume_writing(self) -> None:
        super().resume_writing()
        if self._held:
            self._held = False
            self._stop_watching()
            super().on_response_complete()
        elif self.active is not None:
            self.active.resume()


def _disconnect(cycle: RequestResponseCycle) -> None:
    """Have the application write nothing more: it would be an error, told with a traceback."""
    cycle.disconnected = True
    cycle.message_event.set()
