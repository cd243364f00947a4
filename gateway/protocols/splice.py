"""Setting top-level fields of a JSON body in place: every other byte travels as it came."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from gateway.protocols.fields import Fields, Member, locate, parse


def set_fields(
    body: bytes, changes: Mapping[str, bytes | None], fields: Fields | None = None
) -> bytes:
    """Set, add (at the end) or remove (None) top-level fields; values are given as JSON.

    Everything else stays byte for byte, except in a body that repeats a name: where one of its
    fields is set or removed, the last value of each name is kept, as `json` reads it, so that no
    reader can see another one.

    Args:
        fields: the body's fields if they have been parsed already; saves most of the time.

    Raises:
        msgspec.DecodeError: the body is no JSON object.
        RecursionError: it is nested too deeply.
    """
    if fields is None:
        fields = parse(body)
    if not changes:
        return body
    if fields and fields.keys().isdisjoint(changes):
        return _extended(body, changes)
    members = locate(body, fields)
    if not members:
        return _rebuilt(fields, changes)
    view = memoryview(body)
    parts: list[bytes | memoryview] = [view[: members[0].start]]
    for member in members:
        if member.name not in changes:
            parts += (view[member.start : member.end], b",")
        elif (value := changes[member.name]) is not None:
            parts += (*_with_value(view, member, value), b",")
    for name, value in changes.items():
        if value is not None and name not in fields:
            parts += (msgspec.json.encode(name), b":", value, b",")
    if len(parts) > 1:
        parts.pop()
    parts.append(view[members[-1].end :])
    return b"".join(parts)


def _extended(body: bytes, changes: Mapping[str, bytes | None]) -> bytes:
    """An object with more fields behind those it has; a repeated name is as it was."""
    added = [b",%b:%b" % (msgspec.json.encode(n), v) for n, v in changes.items() if v is not None]
    end = body.rindex(b"}")
    return b"".join((body[:end], *added, body[end:]))


def _with_value(view: memoryview, member: Member, value: bytes) -> tuple[memoryview | bytes, ...]:
    return view[member.start : member.value], value, view[member.stop : member.end]


def _rebuilt(fields: Fields, changes: Mapping[str, bytes | None]) -> bytes:
    """An object without fields, or with repeated ones, written anew."""
    values: dict[str, msgspec.Raw | bytes | None] = {**fields, **changes}
    return msgspec.json.encode(
        {name: msgspec.Raw(value) for name, value in values.items() if value is not None}
    )
