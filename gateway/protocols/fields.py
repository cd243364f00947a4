"""The top-level fields of a JSON object, and where each stands in its bytes.

One pass of msgspec finds and checks everything; a walk over the few top-level fields then gives
positions without looking at the values again, which is what makes editing a 100 KB body cheap.
"""

from __future__ import annotations

import re
from typing import NamedTuple

import msgspec

Fields = dict[str, msgspec.Raw]
"""Name to value, as views into the body; of a repeated name the last value, as in `json`."""

_decode = msgspec.json.Decoder(Fields).decode
_skim = msgspec.json.Decoder(msgspec.Raw).decode
_OPEN = re.compile(rb"[ \t\n\r]*\{")
_KEY = re.compile(rb'[ \t\n\r]*"(?:[^"\\]|\\.)*"[ \t\n\r]*:[ \t\n\r]*', re.DOTALL)
_NEXT = re.compile(rb"[ \t\n\r]*([,}])")


class Member(NamedTuple):
    """Where one field stands: `[start:end]` is between two separators, `[value:stop]` its value."""

    name: str
    start: int
    value: int
    stop: int
    end: int


def parse(body: bytes) -> Fields:
    """Read the object's top level; the values stay JSON, checked but not decoded.

    Raises:
        msgspec.DecodeError: not JSON (msgspec.ValidationError: JSON, but not an object).
        RecursionError: nested too deeply.
    """
    return _decode(body)


def is_json(body: bytes) -> bool:
    """Whether it is JSON of any kind."""
    try:
        _skim(body)
    except (msgspec.DecodeError, RecursionError):
        return False
    return True


def locate(body: bytes, fields: Fields) -> list[Member] | None:
    """Find every field of `body`, in order, or None if a name is repeated.

    The walk is exact, whatever the values hold. It begins where the first name does. If it stands
    at the true start of a value, and the bytes there are a complete JSON value followed by a
    separator, they are that value, since no JSON value is the beginning of another except for
    numbers, which the separator rules out. So it comes to the next name, and so on. A repeated
    name leaves fewer fields than the body has, and the walk does not end at the closing brace.
    """
    opening = _OPEN.match(body)
    if opening is None:
        return None
    members: list[Member] = []
    position, separator = opening.end(), b","
    for name, raw in fields.items():
        key = _KEY.match(body, position) if separator == b"," else None
        if key is None or not body.startswith(raw, key.end()):
            return None
        stop = key.end() + memoryview(raw).nbytes
        after = _NEXT.match(body, stop)
        if after is None:
            return None
        members.append(Member(name, position, key.end(), stop, after.start(1)))
        position, separator = after.end(), after[1]
    return members if separator == b"}" else None
