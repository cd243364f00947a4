"""The words in an event of a stream, for who reads along. Pure."""

from __future__ import annotations

from typing import Any

import msgspec

from gateway.records import Api

_MESSAGES = ("thinking", "text", "partial_json")


def text_of(api: Api, data: bytes) -> str:
    """What was generated with this event, as text; empty where it is none."""
    try:
        event = msgspec.json.decode(data)
    except (msgspec.DecodeError, RecursionError):
        return ""
    if not isinstance(event, dict):
        return ""
    if api is Api.RESPONSES:
        return _text(event.get("delta"))
    if api is Api.MESSAGES:
        return _joined(event.get("delta"), _MESSAGES)
    choices = event.get("choices")
    first = choices[0] if isinstance(choices, list) and choices else None
    return _of_chat(first.get("delta")) if isinstance(first, dict) else ""


def _of_chat(delta: Any) -> str:
    # Some servers name reasoning in both ways at once.
    reasoning = _joined(delta, ("reasoning_content",)) or _joined(delta, ("reasoning",))
    return reasoning + _joined(delta, ("content", "refusal"))


def _joined(delta: Any, names: tuple[str, ...]) -> str:
    if not isinstance(delta, dict):
        return ""
    return "".join(_text(delta.get(name)) for name in names)


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""
