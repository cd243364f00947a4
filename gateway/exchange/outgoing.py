"""The answer on its way to the client: its head, its body, and how it fails.

Whether a failure becomes a status or an event of the stream depends only on whether the head has
gone out, so that is decided in this one place.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from gateway.clients.known import recognise
from gateway.errors import GatewayError
from gateway.exchange.reply import Headers, Reply
from gateway.protocols import faults
from gateway.protocols.translate import StreamTranslation
from gateway.records import Api

_JSON = (b"content-type", b"application/json")
_EVENT_STREAM = [
    (b"content-type", b"text/event-stream; charset=utf-8"),
    (b"cache-control", b"no-cache"),
    # nginx and its kin hold a stream back without this.
    (b"x-accel-buffering", b"no"),
]


class Outgoing:
    """Writes one answer in the dialect of the client's API.

    Args:
        dialect: whose error shapes to use.
        asked: the request's headers, by which the client is known.
        headers: those every answer to this request carries; more may be added until it starts.

    Attributes:
        stream: the client asked for an event stream.
        model: as the client named it.
        response_id: what a stream of the Responses API called itself.
        last_sign: when the client last got what it may count as a sign of life.
    """

    def __init__(
        self,
        reply: Reply,
        dialect: Api,
        request_id: str,
        clock: Callable[[], float],
        asked: Sequence[tuple[bytes, bytes]],
        headers: Headers,
    ) -> None:
        self._reply = reply
        self._asked = asked
        self._translation: StreamTranslation | None = None
        self._dialect = dialect
        self._request_id = request_id
        self._clock = clock
        self.headers = headers
        self._server: Headers = []
        self.stream = False
        self.model = ""
        self.response_id: str | None = None
        self.status = 0
        self.bytes_out = 0
        self.events = 0
        self.last_sign = 0.0
        self.finished = False

    @property
    def started(self) -> bool:
        return self.status != 0

    def served_by(self, arm: str, backend: str) -> None:
        """Tell the client who answers; the last one named counts, while the head is held."""
        self._server = [
            (b"x-gateway-arm", arm.encode()),
            (b"x-gateway-backend", backend.encode()),
        ]

    def whole(self, status: int, headers: Headers, body: bytes) -> None:
        """Answer in one piece."""
        self.status = status
        self._reply.start(status, self.headers + self._server + headers, len(body))
        self._finish(body)

    def open_stream(self, headers: Sequence[tuple[bytes, bytes]] = ()) -> None:
        """Have the head of an event stream sent with its first events, unless it has gone out."""
        if not self.started:
            self.status = 200
            self._reply.start(200, [*self.headers, *self._server, *headers, *_EVENT_STREAM], None)

    def send(self, data: bytes, events: int) -> None:
        """Send whole events of an open stream; none where they are comments, which many clients
        do not count."""
        if events:
            self.events += events
            self.last_sign = self._clock()
        self._write(data)

    def speak(self, translation: StreamTranslation | None) -> None:
        """Have what the gateway itself says in the stream fit in with a translated answer."""
        self._translation = translation

    def keep_alive(self) -> None:
        """Say that the answer is still coming, in the form that this client counts."""
        if self.finished:
            return  # and whoever waited for the answer has yet to stop the clock
        self.open_stream()
        self.last_sign = self._clock()
        if self._translation is not None:
            self._write(self._translation.keep_alive())
        else:
            client = recognise(self._asked)
            self._write(client.keepalive(self._dialect, begun=self.events > 0))

    def end_stream(self, data: bytes, events: int) -> None:
        """Send the last events of an open stream, if any, and end it."""
        self.events += events
        self._finish(data)

    def fail(self, error: GatewayError) -> None:
        """End with an error, told so that this client does what is right about it.

        It is a status, or an event where a stream has begun.
        """
        if self.finished:
            return
        client = recognise(self._asked)
        error = client.reword(self._dialect, error)
        if not self.started:
            if not (self.stream and client.in_stream(self._dialect, error)):
                self._refuse(error, client.error_headers(error))
                return
            self.open_stream()
        self._finish(self._failure(error))

    def _refuse(self, error: GatewayError, headers: Sequence[tuple[bytes, bytes]]) -> None:
        own = [_JSON, *headers]
        if error.retry_after is not None:
            own.append((b"retry-after", b"%d" % math.ceil(error.retry_after)))
        self.whole(error.status, own, faults.body(self._dialect, error, self._request_id))

    def _failure(self, error: GatewayError) -> bytes:
        if self._translation is not None:
            return self._translation.fail(error, self._request_id)
        return faults.stream_event(
            self._dialect,
            error,
            self._request_id,
            self.events,
            response_id=self.response_id,
            model=self.model,
        )

    def abandon(self) -> None:
        """Nobody listens any more."""
        if not self.finished:
            self.finished = True
            self._reply.abort()

    def _write(self, data: bytes) -> None:
        self.bytes_out += len(data)
        self._reply.write(data)

    def _finish(self, data: bytes) -> None:
        self.bytes_out += len(data)
        self.finished = True
        self._reply.finish(data)
