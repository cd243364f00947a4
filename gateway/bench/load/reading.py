"""From stamped reads to a sample: the first generated token, the gaps, and what went wrong."""

from __future__ import annotations

from typing import Any

import msgspec

from gateway.bench.load.client import Exchange
from gateway.bench.results import ErrorKind, Sample
from gateway.protocols.sse import Event, Reader
from gateway.protocols.tokens import Observer
from gateway.records import Api, Usage

LONGEST_DETAIL = 200


class _Stream:
    """What the events of one reply say, in the order of their reads."""

    def __init__(self, api: Api) -> None:
        self._observer = Observer(api)
        self._reader = Reader()
        self.first: float | None = None
        self.last: float | None = None
        self.gaps: list[float] = []
        self.usage: Usage | None = None
        self.error = b""
        self.whole = False

    def read(self, stamp: float, data: bytes) -> None:
        """Raises:
        ValueError: an event is longer than any may be.
        """
        self._take(stamp, self._reader.feed(data))

    def close(self, stamp: float) -> None:
        rest = self._reader.close()
        if rest is not None:
            self._take(stamp, [rest])

    def _take(self, stamp: float, events: list[Event]) -> None:
        token = False
        for event in events:
            seen = self._observer.feed(event)
            token = token or seen.token
            if seen.usage is not None:
                self.usage = seen.usage
            if seen.error and not self.error:
                self.error = event.data or event.raw
            self.whole = self.whole or seen.terminal or seen.finished
        if token:
            if self.first is None:
                self.first = stamp
            elif self.last is not None:
                self.gaps.append(stamp - self.last)
            self.last = stamp


def sample_of(
    exchange: Exchange,
    api: Api,
    *,
    origin: float,
    number: int = 0,
    session: str = "",
    turn: int = 0,
    prompt_characters: int = 0,
) -> Sample:
    """Read one exchange.

    Args:
        origin: when the round began, on the clock of the exchange.
    """
    stream = _Stream(api)
    broken = ""
    try:
        for stamp, data in exchange.reads:
            stream.read(stamp, data)
        if exchange.reads:
            stream.close(exchange.reads[-1][0])
    except ValueError as error:
        broken = str(error)
    failed, detail = _judge(exchange, stream, broken)
    due, usage = exchange.due, stream.usage
    headers = {name: value.decode("latin-1") for name, value in reversed(exchange.headers)}
    return Sample(
        number=number,
        due_ms=_ms(due - origin),
        ttft_ms=None if stream.first is None else _ms(stream.first - due),
        e2e_ms=_ms(exchange.reads[-1][0] - due) if failed is None else None,
        itl_ms=tuple(map(_ms, stream.gaps)),
        client_ms=_ms(_client(exchange)),
        prompt_tokens=usage.prompt if usage else None,
        cached_tokens=usage.cached if usage else None,
        completion_tokens=usage.completion if usage else None,
        prompt_characters=prompt_characters,
        session=session,
        turn=turn,
        arm=headers.get(b"x-gateway-arm", ""),
        backend=headers.get(b"x-gateway-backend", ""),
        status=exchange.status,
        error=failed,
        detail=detail[:LONGEST_DETAIL],
    )


def _judge(exchange: Exchange, stream: _Stream, broken: str) -> tuple[ErrorKind | None, str]:
    """Why it failed, and what was said of it."""
    said = exchange.failure.detail or exchange.failure.message if exchange.failure else ""
    if exchange.failure is not None and exchange.sent is None:
        return ErrorKind.CONNECT, said
    if exchange.timed_out:
        return ErrorKind.TIMEOUT, "no complete answer in time"
    if exchange.status not in (0, 200):
        return ErrorKind.STATUS, _message(_body(exchange))
    if stream.error:
        return ErrorKind.REPORTED, _message(stream.error)
    if exchange.status == 200 and (broken or not _is_stream(exchange)):
        return ErrorKind.MALFORMED, broken or _message(_body(exchange))
    if not stream.whole:
        return ErrorKind.CUT, said or "the stream ended without its last event"
    if stream.first is None:
        return ErrorKind.EMPTY, "a complete answer without a token"
    return None, ""


def _client(exchange: Exchange) -> float:
    """Seconds the client used itself before the request had left; connecting is not its cost."""
    if exchange.sent is None or exchange.ready is None:
        return exchange.late
    return exchange.late + exchange.sent - exchange.ready


def _is_stream(exchange: Exchange) -> bool:
    kinds = [value for name, value in exchange.headers if name == b"content-type"]
    return bool(kinds) and kinds[0][:17].lower() == b"text/event-stream"


def _body(exchange: Exchange) -> bytes:
    return b"".join(data for _, data in exchange.reads)


def _message(body: bytes) -> str:
    """The message of an error in any API's shape, else the beginning of the text."""
    try:
        found: Any = msgspec.json.decode(body)
    except (msgspec.DecodeError, RecursionError):
        return body[:LONGEST_DETAIL].decode(errors="replace")
    while isinstance(found, dict):
        found = found.get("error") or found.get("response") or found.get("message")
    return found if isinstance(found, str) else body[:LONGEST_DETAIL].decode(errors="replace")


def _ms(seconds: float) -> float:
    return round(seconds * 1000, 3)
