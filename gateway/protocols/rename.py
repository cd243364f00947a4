"""Naming the model in a reply as the client named it."""

from __future__ import annotations

from functools import lru_cache

import msgspec

from gateway.protocols.fields import Fields, locate, parse

_KEY = b'"model":'
_WITHIN = ("message", "response")


def rename(raw: bytes, old: bytes, new: bytes) -> bytes:
    """Replace the model's name in a reply or in one event of a stream.

    The name stands at the top level, or in `message` or `response`; whatever else is called
    `model` (metadata, tool arguments) stays. Bytes without a name come back as they are.

    Args:
        raw: a JSON object, or an event with all its lines.
        old: the name expected; another one is replaced as well, but takes longer to find.
        new: the name to put there.
    """
    place = raw.find(_KEY)
    if place < 0 and b'"model"' not in raw:
        return raw
    # No JSON string holds a bare quote, so this is a key; with one brace before it, a top one.
    was, value = _as_json(old), _as_json(new)
    start = place + len(_KEY)
    if raw.startswith(was, start) and raw.count(b"{", 0, place) == 1:
        return raw[:start] + value + raw[start + len(was) :]
    return _exact(raw, value)


@lru_cache(maxsize=1024)
def _as_json(name: bytes) -> bytes:
    return msgspec.json.encode(name.decode())


def _exact(raw: bytes, value: bytes) -> bytes:
    opening, closing = raw.find(b"{"), raw.rfind(b"}") + 1
    text = raw[opening:closing]
    try:
        span = _span(text, parse(text))
    except (msgspec.DecodeError, RecursionError):
        return raw
    if span is None:
        return raw
    start, stop = span
    return raw[: opening + start] + value + raw[opening + stop :]


def _span(text: bytes, fields: Fields) -> tuple[int, int] | None:
    """Where the value of the model's name begins and ends in `text`."""
    members = {member.name: member for member in locate(text, fields) or ()}
    if "model" in members:
        own = members["model"]
        return (own.value, own.stop) if text[own.value : own.value + 1] == b'"' else None
    for name in _WITHIN:
        if name in members and text[members[name].value : members[name].value + 1] == b"{":
            inner = bytes(fields[name])
            span = _span(inner, parse(inner))
            if span is not None:
                return members[name].value + span[0], members[name].value + span[1]
    return None
