"""Streams of `/v1/responses`: what each event carries.

`response.created` and `response.in_progress` come before the engine has produced anything.
"""

from __future__ import annotations

from typing import Any

import msgspec

from gateway.protocols import usage
from gateway.protocols.seen import ERROR, NOTHING, TERMINAL, TOKEN, Seen, not_json
from gateway.protocols.sse import Event

_CALLS = frozenset({"function_call", "custom_tool_call"})
_LAST = frozenset({"response.completed", "response.incomplete", "response.failed"})


class _Item(msgspec.Struct, gc=False):
    type: str = ""


class _Response(msgspec.Struct, gc=False):
    id: str | None = None
    usage: Any = None


class _Frame(msgspec.Struct, gc=False):
    type: str = ""
    delta: Any = None
    item: _Item | None = None
    response: _Response | None = None
    error: Any = None
    object: Any = None


_decode = msgspec.json.Decoder(_Frame).decode


class ResponsesStream:
    """Reads the events of one stream."""

    __slots__ = ()

    def feed(self, event: Event) -> Seen:
        try:
            frame = _decode(event.data)
        except (msgspec.DecodeError, RecursionError):
            seen = not_json(event.data)
            # Its last event repeats the answer; clients stop at chat's word for the end.
            return ERROR if seen is TERMINAL else seen
        kind = frame.type
        if kind[-6:] == ".delta":
            return TOKEN if frame.delta else NOTHING
        if frame.error is not None or "error" in (kind, frame.object) or event.event == b"error":
            return ERROR
        if kind == "response.output_item.added":
            return TOKEN if frame.item is not None and frame.item.type in _CALLS else NOTHING
        if frame.response is None:
            return NOTHING
        return Seen(
            usage=usage.of_responses(frame.response.usage),
            error=kind == "response.failed",
            terminal=kind in _LAST,
            response_id=frame.response.id,
        )
