"""One HTTP/1.1 connection to a backend: a request goes out, its reply comes back as callbacks.

httptools parses; nothing here awaits. Reply bytes are handed on once a socket read, however many
HTTP chunks that read held, because a burst of small chunks would otherwise cost a call each.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Protocol, cast

import httptools

from gateway.errors import BackendFailed

Headers = list[tuple[bytes, bytes]]

BROKEN = "The model's server broke off before its answer was complete; send the request again."
MALFORMED = "The model's server sent an answer that is not valid HTTP; send the request again."


class StaleConnection(BackendFailed):
    """A kept-alive connection was closed by the other side before it answered anything.

    Servers close idle connections whenever they like, so this says nothing about the backend:
    the request goes again on a fresh connection.
    """


class ReplySink(Protocol):
    """Who reads one reply. Calls come in order: head, data…, then end or failure, once."""

    def on_head(self, status: int, headers: Headers) -> None: ...
    def on_data(self, data: bytes) -> None: ...
    def on_end(self) -> None: ...
    def on_failure(self, error: BackendFailed) -> None: ...


class Connection(asyncio.Protocol):
    """A connection that carries one exchange at a time.

    Args:
        on_idle: called when a reply is complete and the connection may carry another request.
        on_lost: called once when the connection is gone.
        max_header_bytes: a reply head that is longer is refused.
    """

    def __init__(
        self,
        on_idle: Callable[[Connection], None],
        on_lost: Callable[[Connection], None],
        max_header_bytes: int,
    ) -> None:
        self._on_idle = on_idle
        self._on_lost = on_lost
        self._max_header_bytes = max_header_bytes
        self._transport: asyncio.Transport | None = None
        self._body: list[bytes] = []
        # What the parser calls for each chunk, of which a burst has one an event.
        self.on_body = self._body.append
        self._parser = httptools.HttpResponseParser(self)
        self._sink: ReplySink | None = None
        self._used = False  # carried an exchange before the present one
        self._paused = False
        self._ending: asyncio.TimerHandle | None = None
        self._begin()

    def _begin(self) -> None:
        self._headers: Headers = []
        self._head_bytes = 0
        self._head_done = False
        self._until_close = True  # no length given: the end of the connection is the end
        self._complete = False
        self._last_body = 0
        self._keep_alive = False
        self._answered = False

    # What the exchange calls

    def send(self, request: Sequence[bytes], sink: ReplySink) -> None:
        """Write a whole request; its reply goes to `sink`."""
        assert self._sink is None
        if self._transport is None or self._transport.is_closing():
            # Port forwarders accept, and close once they find nothing to forward to.
            sink.on_failure(BackendFailed(BROKEN, detail="connection lost: closed at once"))
            return
        self._sink = sink
        self._begin()
        self._transport.writelines(request)

    def cancel(self, sink: ReplySink) -> None:
        """Close at once if `sink` is still being answered: what follows is not wanted.

        When its reply is complete the connection may already carry somebody else's request.
        """
        if self._sink is sink:
            self.abort()

    def let_end(self, sink: ReplySink, seconds: float) -> None:
        """Nothing more is wanted of this reply, but its end would make the connection free."""
        if self._sink is sink:
            self.resume_reading()
            loop = asyncio.get_running_loop()
            self._ending = loop.call_later(seconds, self.cancel, sink)

    def abort(self) -> None:
        """Close at once, whatever it carries."""
        self._sink = None
        self._close()

    def pause_reading(self) -> None:
        if not self._paused and self._transport is not None and not self._transport.is_closing():
            self._paused = True
            self._transport.pause_reading()

    def resume_reading(self) -> None:
        if self._paused and self._transport is not None and not self._transport.is_closing():
            self._paused = False
            self._transport.resume_reading()

    def is_usable(self) -> bool:
        return self._transport is not None and not self._transport.is_closing()

    # What the event loop calls

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)

    def data_received(self, data: bytes) -> None:
        if self._sink is None:
            # An answer nobody asked for: the connection cannot be trusted with another request.
            self._close()
            return
        self._answered = True
        try:
            self._parser.feed_data(data)
        except (httptools.HttpParserError, httptools.HttpParserUpgrade) as error:
            self._fail(BackendFailed(MALFORMED, detail=f"malformed reply: {error}"))
            return
        if self._complete:
            del self._body[self._last_body :]  # of what came behind the reply
        if self._body:
            body = self._body[0] if len(self._body) == 1 else b"".join(self._body)
            self._body.clear()
            self._head_bytes = 0
            self._sink.on_data(body)
        elif not self._complete:
            # Of a head, a trailer or the framing of chunks, none of which may go on for ever.
            self._head_bytes += len(data)
            if self._head_bytes > self._max_header_bytes:
                what = "trailer" if self._head_done else "head"
                detail = f"reply {what} longer than {self._max_header_bytes} bytes"
                self._fail(BackendFailed(MALFORMED, detail=detail))
            return
        if self._complete:
            self._finish()

    def eof_received(self) -> None:
        """The transport closes itself; `connection_lost` says what that meant."""

    def connection_lost(self, exc: Exception | None) -> None:
        self._transport = None
        del self._parser  # it holds this, and only the collector would free the two
        if self._ending is not None:
            self._ending.cancel()
            self._ending = None
        self._on_lost(self)
        sink = self._sink
        if sink is None:
            return
        if self._head_done and self._until_close and exc is None:
            self._sink = None
            sink.on_end()
        elif self._used and not self._answered:
            self._fail(StaleConnection(BROKEN, detail="stale connection"))
        else:
            self._fail(BackendFailed(BROKEN, detail=f"connection lost: {exc or 'closed'}"))

    # What the parser calls

    def on_message_begin(self) -> None:
        if self._complete:
            self._keep_alive = False  # more bytes than the reply has: whose they are is unknown

    def on_header(self, name: bytes, value: bytes) -> None:
        if self._head_done:
            return  # a trailer, or a head that nobody asked for
        name = name.lower()
        if name == b"content-length" or name == b"transfer-encoding":
            self._until_close = False
        self._headers.append((name, value))

    def on_headers_complete(self) -> None:
        status = self._parser.get_status_code()
        if self._complete:
            return
        if status < 200:
            # An interim reply: the real one follows, with a length of its own.
            self._headers, self._until_close = [], True
            return
        self._head_done = True
        if self._sink is not None:
            self._sink.on_head(status, self._headers)

    def on_message_complete(self) -> None:
        if not self._head_done or self._complete:
            return  # an interim reply, or one that nobody asked for
        self._complete = True
        self._last_body = len(self._body)
        # Only valid while the message is being completed: asked later, it always says no.
        self._keep_alive = self._parser.should_keep_alive()

    def _finish(self) -> None:
        sink, self._sink = self._sink, None
        assert sink is not None and self._transport is not None
        if self._ending is not None:
            self._ending.cancel()
            self._ending = None
        unsent = self._transport.get_write_buffer_size()
        if self._keep_alive and not unsent and not self._transport.is_closing():
            self._used = True
            self.resume_reading()
            self._on_idle(self)
        else:
            self._close()
        sink.on_end()

    def _fail(self, error: BackendFailed) -> None:
        sink, self._sink = self._sink, None
        self._close()
        if sink is not None:
            sink.on_failure(error)

    def _close(self) -> None:
        if self._transport is not None:
            self._transport.abort()
