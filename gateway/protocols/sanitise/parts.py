"""JSON taken apart one level at a time: what is not repaired keeps its bytes."""

from __future__ import annotations

from typing import Any

import msgspec

from gateway.protocols.fields import Fields

Changes = dict[str, bytes | None]
"""New values of top-level fields, None for one to remove: what `splice.set_fields` takes."""

_object = msgspec.json.Decoder(Fields).decode
_list = msgspec.json.Decoder(list[msgspec.Raw]).decode
_any = msgspec.json.Decoder().decode


def members(raw: msgspec.Raw | None) -> Fields | None:
    """The members of a JSON object; None for anything else."""
    if raw is None:
        return None
    try:
        return _object(raw)
    except (msgspec.DecodeError, RecursionError):
        return None


def elements(raw: msgspec.Raw | None) -> list[msgspec.Raw] | None:
    """The elements of a JSON list; None for anything else."""
    if raw is None:
        return None
    try:
        return _list(raw)
    except (msgspec.DecodeError, RecursionError):
        return None


def decoded(raw: msgspec.Raw | None) -> Any:
    """A whole value; None too where there is none, or none that can be read."""
    if raw is None:
        return None
    try:
        return _any(raw)
    except (msgspec.DecodeError, RecursionError):
        return None


def word(raw: msgspec.Raw | None) -> str:
    """A string; empty for anything else."""
    value = decoded(raw)
    return value if isinstance(value, str) else ""


def encoded(value: Any) -> msgspec.Raw:
    """A value as JSON. It may hold `Raw` parts, which stay as they are."""
    return msgspec.Raw(msgspec.json.encode(value))


def is_null(raw: msgspec.Raw | None) -> bool:
    """Whether a member is absent or null."""
    return raw is None or bytes(raw) == b"null"


def same(new: list[msgspec.Raw], old: list[msgspec.Raw]) -> bool:
    """Whether these are the very elements that a list had."""
    return len(new) == len(old) and all(a is b for a, b in zip(new, old, strict=True))
