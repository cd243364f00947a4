"""Naming the model in a reply as the client named it."""

from __future__ import annotations

import msgspec

from gateway.protocols.fields import locate, parse

_WITHIN = ("message", "response")


def rename(raw: bytes, old: bytes, new: bytes) -> bytes:
    """Replace the model's name in a reply, or in one event of a stream with all its lines.

    The name stands at the top level, or in `message` or `response`; whatever else is called
    `model` (metadata, tool arguments) stays.

    Args:
        old: the name to expect; another one is replaced too, but takes longer to find.
        new: the name to put there.

    Returns:
        The bytes with the new name; the same object where there is no name.
    """
    span = _span(raw, _json(old))
    return raw if span is None else raw[: span[0]] + _json(new) + raw[span[1] :]


class Renamer:
    """`rename` for the events of one stream, at a fraction of its cost.

    Events of one stream begin alike, up to and past the model's name: where that beginning comes
    again, the name stands at the same place, whatever follows.
    """

    __slots__ = ("_begins", "_length", "_new", "_old", "_renamed")

    def __init__(self, old: bytes, new: bytes) -> None:
        self._old, self._new = _json(old), _json(new)
        self._begins = self._renamed = b""
        self._length = 0

    def event(self, raw: bytes) -> bytes:
        """The event with the name replaced; the same object where it holds none."""
        if self._length and raw[: self._length] == self._begins:
            return self._renamed + raw[self._length :]
        span = _span(raw, self._old)
        if span is None:
            return raw
        self._length = span[1]
        self._begins = raw[: span[1]]
        self._renamed = raw[: span[0]] + self._new
        return self._renamed + raw[span[1] :]


def _json(name: bytes) -> bytes:
    return msgspec.json.encode(name.decode())


def _span(raw: bytes, old: bytes) -> tuple[int, int] | None:
    """Where the value of the model's name begins and ends, if it is there."""
    key = raw.find(b'"model":')
    if key >= 0:
        # No JSON string holds a bare quote, so this is a name; after one brace, a top-level one.
        value = key + len(b'"model":')
        if raw.startswith(old, value) and raw.count(b"{", 0, key) == 1:
            return value, value + len(old)
    elif b'"model"' not in raw:
        return None
    opening, closing = raw.find(b"{"), raw.rfind(b"}") + 1
    span = _span_within(raw[opening:closing])
    return None if span is None else (opening + span[0], opening + span[1])


def _span_within(text: bytes) -> tuple[int, int] | None:
    try:
        fields = parse(text)
    except (msgspec.DecodeError, RecursionError):
        return None
    members = {member.name: member for member in locate(text, fields) or ()}
    own = members.get("model")
    if own is not None:
        return (own.value, own.stop) if text.startswith(b'"', own.value) else None
    for name in _WITHIN:
        outer = members.get(name)
        span = _span_within(text[outer.value : outer.stop]) if outer is not None else None
        if outer is not None and span is not None:
            return outer.value + span[0], outer.value + span[1]
    return None
