"""Server-sent events: bytes in, complete events out (WHATWG HTML, section 9.2).

The relay forwards what a backend sent byte for byte and reads beside it, so an event keeps its
exact bytes, and blocks that carry no data (comments, stray blank lines) are events too: the raw
bytes of all events and the pending tail are always exactly the input.
"""

from __future__ import annotations

import re

import msgspec

MAX_EVENT_BYTES = 16 * 1024 * 1024
"""The longest event accepted: generous, since a `response.completed` repeats the whole answer."""

CR = 0x0D
"""A number, since `bytes in bytes` takes five times as long: it tries the left one as a number."""

_BOM = b"\xef\xbb\xbf"

# A blank line ends an event. A CR at the end of what has arrived may be half of a CRLF, so it
# decides nothing before the next byte: that is what makes every split give the same events. The
# first line end is atomic, or a CRLF would count as two.
_BLANK_LINE = re.compile(rb"(?>\r\n|\r|\n)(?:\r\n|\n|\r(?=[^\n]))", re.DOTALL)
_LINE_END = re.compile(rb"\r\n|\n|\r(?=[^\n])", re.DOTALL)


class Event(msgspec.Struct, frozen=True, gc=False):
    """One block of a stream.

    Attributes:
        raw: its exact bytes, the blank line at its end included.
        data: its data lines joined by LF, without the field name; empty for a comment.
        event: its event name, empty when it has none.
    """

    raw: bytes
    data: bytes
    event: bytes = b""


class Reader:
    """Cuts a byte stream into events, whatever the line ends and however it is split.

    Args:
        max_event_bytes: `feed` raises ValueError when an event grows beyond it.
    """

    __slots__ = ("_at_start", "_edge", "_held", "_max", "_parts")

    def __init__(self, max_event_bytes: int = MAX_EVENT_BYTES) -> None:
        self._parts: list[bytes] = []
        self._held = 0
        self._edge = b""
        self._at_start = True
        self._max = max_event_bytes

    @property
    def holds(self) -> bool:
        """Whether something of the next event has arrived."""
        return bool(self._parts)

    @property
    def pending(self) -> bytes:
        """What has arrived of the next event."""
        return b"".join(self._parts)

    def feed(self, data: bytes) -> list[Event]:
        """Take in what was read; return the events it completes.

        Raises:
            ValueError: the event being received is longer than allowed.
        """
        if self._parts:
            if not self._may_end(data):
                self._hold(data)
                return []
            self._parts.append(data)
            data = self.pending
            self._parts.clear()
            self._held = 0
        events: list[Event] = []
        tail = _cut(data, events)
        if self._at_start and events:
            self._at_start = False
            if events[0].raw.startswith(_BOM):
                events[0] = _without_bom(events[0].raw)
        if tail:
            self._hold(tail)
        return events

    def close(self) -> Event | None:
        """Return what is left, if anything.

        A browser drops an event that no blank line ends. Here it is handed on: some servers leave
        the last blank line out, and a relay must not lose bytes.
        """
        raw = self.pending
        self._parts.clear()
        if not raw:
            return None
        return _without_bom(raw) if self._at_start and raw.startswith(_BOM) else _parse(raw)

    def _hold(self, data: bytes) -> None:
        self._parts.append(data)
        self._edge = data[-2:] if len(data) > 1 else (self._edge + data)[-2:]
        self._held += len(data)
        if self._held > self._max:
            raise ValueError(f"an event is longer than {self._max} bytes")

    def _may_end(self, data: bytes) -> bool:
        """Whether `data` may complete the held event.

        Joining and searching at every read would cost a long event its length squared.
        """
        seam = self._edge + data[:2]
        return self._held == 1 or any(
            pair in seam or pair in data for pair in (b"\n\n", b"\n\r", b"\r\r")
        )


def _cut(data: bytes, events: list[Event]) -> bytes:
    """Cut `data` into events, append them, return the tail."""
    if CR not in data:
        return _cut_lines(data, b"\n", events)
    if data.count(b"\r") == data.count(b"\n") == data.count(b"\r\n"):
        return _cut_lines(data, b"\r\n", events)
    return _cut_any(data, events)


def _cut_lines(data: bytes, end: bytes, events: list[Event]) -> bytes:
    """Cut `data`, all of whose lines end in `end`.

    A split at single bytes costs half of a split at LF LF, hence the lines.
    """
    lines = data.split(end)
    tail = lines.pop()
    append = events.append
    blank = end + end
    first = b""
    rest: list[bytes] = []
    for line in lines:
        if line:
            if first:
                rest.append(line)
            else:
                first = line
            continue
        if rest:
            append(_of_lines(first, rest, end))
            rest.clear()
        elif first[:6] == b"data: ":
            append(Event(first + blank, first[6:]))
        elif first:
            append(_parse(first + blank))
        else:
            append(Event(end, b""))
        first = b""
    return end.join((first, *rest, tail)) if first else tail


def _of_lines(first: bytes, rest: list[bytes], end: bytes) -> Event:
    raw = end.join((first, *rest, b"", b""))
    if first[:7] == b"event: " and len(rest) == 1 and rest[0][:6] == b"data: ":
        return Event(raw, rest[0][6:], first[7:])
    return _parse(raw)


def _cut_any(data: bytes, events: list[Event]) -> bytes:
    start, size = 0, len(data)
    while start < size:
        end = _LINE_END.match(data, start) or _BLANK_LINE.search(data, start)
        if end is None:
            break
        events.append(_parse(data[start : end.end()]))
        start = end.end()
    return data[start:]


def _without_bom(raw: bytes) -> Event:
    parsed = _parse(raw[len(_BOM) :])
    return Event(raw, parsed.data, parsed.event)


def _parse(raw: bytes) -> Event:
    data: list[bytes] = []
    name = b""
    for line in raw.replace(b"\r\n", b"\n").replace(b"\r", b"\n").split(b"\n"):
        field, _, value = line.partition(b":")
        if field == b"data":
            data.append(value.removeprefix(b" "))
        elif field == b"event":
            name = value.removeprefix(b" ")
    return Event(raw, b"\n".join(data), name)
