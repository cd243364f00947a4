"""One attempt at one backend: connect, send, and take the reply as it comes.

The reply arrives as callbacks from the connection; an attempt turns them into writes to the
client and resolves once, well or with an `AttemptFailed`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from gateway.errors import BackendFailed
from gateway.exchange.call import Call
from gateway.exchange.draft import Draft
from gateway.exchange.failure import AttemptFailed, backend_fault, judged, unreadable
from gateway.exchange.form import Form
from gateway.exchange.headers import Headers, find, to_client
from gateway.exchange.outgoing import Outgoing
from gateway.exchange.stream import Stream, stream_of
from gateway.protocols import faults, tokens, unstreamed
from gateway.protocols.fields import is_json
from gateway.records import Api, Usage
from gateway.routing.backend import Backend
from gateway.upstream.connection import Connection, StaleConnection
from gateway.upstream.pool import Pool

CUT = "The model's server broke off before its answer was complete; send the request again."
JSON = (b"content-type", b"application/json")
MAX_REPLY_BYTES = 128 * 1024 * 1024
# A stream is over with its last event; so long (in seconds) its connection may take to be free.
FRAMING_TIME = 1.0


class Attempt:
    """Sends `call` in one `form` to `backend` once and relays the reply to `outgoing`.

    Args:
        learn: told the id of a response, and its backend, as soon as it is known.

    Attributes:
        stream: the event stream being relayed, once one has begun.
        usage: token counts, once the backend told them.
        last_read: when bytes last came, or when the request was sent.
    """

    def __init__(
        self,
        call: Call,
        form: Form,
        backend: Backend,
        outgoing: Outgoing,
        draft: Draft,
        clock: Callable[[], float],
        learn: Callable[[str, Backend], None],
    ) -> None:
        self._call = call
        self._form = form
        self._backend = backend
        self._outgoing = outgoing
        self._draft = draft
        self._clock = clock
        self._learn = learn
        self._connection: Connection | None = None
        self._answered: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._status = 0
        self._kind = b""
        self._headers: Headers = []
        self._body: list[bytes] = []
        self._body_bytes = 0
        self._paused = False
        self._translated = form.translation.stream() if form.translation and call.stream else None
        outgoing.speak(self._translated)
        self.stream: Stream | None = None
        self.usage: Usage | None = None
        self.last_read = 0.0

    async def run(self, pool: Pool) -> None:
        """Returns when the whole reply has been relayed.

        Raises:
            AttemptFailed: it was not.
        """
        try:
            try:
                await self._exchange(pool.take() or await pool.connect(), pool)
            except StaleConnection:
                self._answered = asyncio.get_running_loop().create_future()
                await self._exchange(await pool.connect(), pool)
        except BackendFailed as error:
            raise backend_fault(error) from None

    async def _exchange(self, connection: Connection, pool: Pool) -> None:
        call, form = self._call, self._form
        self._connection = connection
        self.last_read = self._draft.timeline.sent = self._clock()
        self._draft.forget_marks()
        head = b"%b %b%b HTTP/1.1\r\n%b%b%b%bcontent-length: %d\r\n\r\n" % (
            call.method,
            pool.target,
            form.path,
            pool.host_lines,
            call.headers,
            self._authorization(),
            b"accept-encoding: identity\r\nx-request-id: %b\r\n" % self._draft.id.encode(),
            len(form.body),
        )
        connection.send((head, form.body), self)
        if self._paused:
            connection.pause_reading()
        try:
            await self._answered
        except BaseException:
            # Also when the client left or a time limit passed: the backend must stop at once.
            connection.cancel(self)
            raise
        finally:
            self._connection = None
        connection.let_end(self, FRAMING_TIME)

    def _authorization(self) -> bytes:
        key = self._backend.api_key
        return b"authorization: Bearer %b\r\n" % key if key else b""

    def pause(self) -> None:
        """The client reads slower than the backend writes."""
        self._paused = True
        if self._connection is not None:
            self._connection.pause_reading()

    def resume(self) -> None:
        self._paused = False
        self.last_read = self._clock()
        if self._connection is not None:
            self._connection.resume_reading()

    # The reply, as the connection tells it

    def on_head(self, status: int, headers: Headers) -> None:
        self._draft.timeline.upstream_headers = self._clock()
        self._status = status
        self._kind = find(headers, b"content-type")
        self._headers = to_client(headers)
        if status == 200 and self._call.stream and self._kind[:17].lower() == b"text/event-stream":
            self.stream = stream_of(self._call, self._form, self._draft, self._translated)

    def on_data(self, data: bytes) -> None:
        now = self._clock()
        self.last_read = now
        if self._draft.timeline.first_byte is None:
            self._draft.timeline.first_byte = now
        if self.stream is not None:
            self._relay(self.stream, data, now)
            return
        self._body.append(data)
        self._body_bytes += len(data)
        if self._body_bytes > MAX_REPLY_BYTES:
            self._resolve(unreadable(f"reply longer than {MAX_REPLY_BYTES} bytes"))

    def on_end(self) -> None:
        self._connection = None
        if self._answered.done():
            return
        if self.stream is not None:
            self._end_stream(self.stream)
        elif 200 <= self._status < 300:
            self._answer_whole()
        elif self._form.otherwise is not None:
            self._outgoing.whole(200, [JSON], self._form.otherwise())
            self._resolve(None)
        else:
            self._resolve(self._refusal())

    def on_failure(self, error: BackendFailed) -> None:
        self._connection = None
        if self._answered.done():
            return
        if self.stream is not None and self.stream.finished:
            self._end_stream(self.stream)  # what is missing is the framing
        else:
            self._answered.set_exception(error)

    # What comes of it

    def _relay(self, stream: Stream, data: bytes, now: float) -> None:
        if self._answered.done():
            return
        read = self._read(stream, data, now)
        if read is None:
            return
        out, count = read
        # Comments alone open nothing: a backend that fails behind them can still be replaced.
        opens = count > 0 and stream.failed is None
        if opens:
            self._outgoing.open_stream(self._headers)
        if stream.terminal and stream.failed is None:
            self._complete(out, count)
            return
        if out and (opens or self._outgoing.started):
            self._outgoing.send(out, count)
        if stream.failed is not None:
            self._resolve(self._reported(stream.failed))

    def _read(self, stream: Stream, data: bytes, now: float) -> tuple[bytes, int] | None:
        """What the client gets for `data`; None where it is unreadable, which ends the attempt."""
        try:
            read = stream.feed(data, now)
        except ValueError as error:
            self._resolve(unreadable(str(error)))
            return None
        if stream.usage is not None:
            self.usage = stream.usage
        # Not only the first: an attempt that failed before this one may have named its own.
        if stream.response_id is not None and self._outgoing.response_id != stream.response_id:
            self._outgoing.response_id = stream.response_id
            self._learn(stream.response_id, self._backend)
        return read

    def _end_stream(self, stream: Stream) -> None:
        read = self._read(stream, stream.lacking, self._clock())
        if read is None:
            return
        if not (stream.terminal or stream.finished):
            cut = BackendFailed(CUT, detail="stream ended without its last event")
            told = stream.failed
            self._resolve(backend_fault(cut) if told is None else self._reported(told))
            return
        out, count = read
        self._outgoing.open_stream(self._headers)
        if not stream.terminal:
            out, count = out + stream.end(), count + 1
        self._complete(out, count)

    def _complete(self, out: bytes, count: int) -> None:
        """With this the client has its whole answer, whatever the backend still sends."""
        self._outgoing.end_stream(out, count)
        self._resolve(None)

    def _answer_whole(self) -> None:
        body = b"".join(self._body)
        self.usage = tokens.usage_of(self._form.api, body)
        if self.usage is None and faults.is_error(body):
            self._resolve(self._reported(body))
            return
        if self._call.stream:
            self._relay_whole(body)
            return
        # A coding that was not asked for is left to the client.
        coded = find(self._headers, b"content-encoding")
        if self.usage is None and not coded and not is_json(body):
            self._resolve(unreadable(f"not JSON but {self._kind[:40]!r} of {len(body)} bytes"))
            return
        response_id = tokens.response_id_of(body) if self._form.api is Api.RESPONSES else None
        if response_id is not None:
            self._learn(response_id, self._backend)
        try:
            body = self._form.answer(body, self._call.rename)
        except ValueError as error:
            self._resolve(unreadable(str(error)))
            return
        kind = (b"content-type", self._kind) if self._kind else JSON
        self._outgoing.whole(self._status, [kind, *self._headers], body)
        self._resolve(None)

    def _relay_whole(self, body: bytes) -> None:
        """The backend was asked for a stream and answered at once."""
        try:
            written = unstreamed.events(self._form.api, body)
        except ValueError:
            self._resolve(unreadable(f"not an event stream but {self._kind[:40]!r}"))
            return
        stream = stream_of(self._call, self._form, self._draft, self._translated)
        self._relay(stream, written, self._clock())
        if not self._answered.done():
            self._end_stream(stream)

    def _refusal(self) -> AttemptFailed:
        body, wait = b"".join(self._body), find(self._headers, b"retry-after")
        # A date is as good as none where clocks differ, and so is a wait for ever.
        retry_after = float(wait) if wait.isdigit() and len(wait) < 10 else None
        return judged(faults.reworded(self._call.api, self._status, body, retry_after=retry_after))

    def _reported(self, data: bytes) -> AttemptFailed:
        """An error the backend reported within its stream, or under a status of success."""
        return judged(faults.reworded(self._call.api, 200, data))

    def _resolve(self, failure: AttemptFailed | None) -> None:
        if self._answered.done():
            return
        if failure is None:
            self._answered.set_result(None)
        else:
            self._answered.set_exception(failure)
