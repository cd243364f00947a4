"""Answers of a native `/v1/responses` under the names that the client gave its tools."""

from __future__ import annotations

from typing import Any

import msgspec

from gateway.protocols.fields import Fields, parse
from gateway.protocols.sanitise.parts import decoded, elements, encoded, members, word
from gateway.protocols.sse import Event
from gateway.protocols.translate.custom_input import InputReader, custom_input
from gateway.protocols.translate.responses_tools import Names

_ITEMS = frozenset({"response.output_item.added", "response.output_item.done"})
_ARGUMENTS = "response.function_call_arguments."
_INPUT = "response.custom_tool_call_input."


class Restore:
    """One answer, event by event or whole; what holds no call of such a tool stays as it came.

    A custom tool's call arrives as a function's: its arguments become the input they hold, piece
    by piece.

    Args:
        names: what the request's tools are called, from `responses.repair`.
    """

    __slots__ = ("_inputs", "_names")

    def __init__(self, names: Names) -> None:
        self._names = names
        self._inputs: dict[int, InputReader] = {}

    def event(self, event: Event) -> bytes:
        """The bytes that the client gets for one event of the stream."""
        # Nearly every event is a delta of text, and this is all that it costs.
        if b"function_call" not in event.data:
            return event.raw
        frame = members(msgspec.Raw(event.data))
        changed = self._frame(frame) if frame is not None else None
        if changed is None:
            return event.raw
        name = word(changed["type"]).encode() if event.event else b""
        return (b"event: %b\n" % name if name else b"") + b"data: %b\n\n" % (
            msgspec.json.encode(changed)
        )

    def whole(self, reply: bytes) -> bytes:
        """The bytes of an unstreamed answer."""
        if b"function_call" not in reply:
            return reply
        try:
            changed = self._response(parse(reply))
        except (msgspec.DecodeError, RecursionError):
            return reply
        return reply if changed is None else msgspec.json.encode(changed)

    def _frame(self, frame: Fields) -> Fields | None:
        """The frame's fields as the client gets them, or None where they stay."""
        kind = word(frame.get("type"))
        if kind in _ITEMS:
            return self._item_frame(frame)
        if kind.startswith(_ARGUMENTS):
            return self._arguments(kind.removeprefix(_ARGUMENTS), frame)
        response = members(frame.get("response"))
        changed = self._response(response) if response is not None else None
        return None if changed is None else {**frame, "response": encoded(changed)}

    def _item_frame(self, frame: Fields) -> Fields | None:
        item = self._item(decoded(frame.get("item")))
        if item is None:
            return None
        index = decoded(frame.get("output_index"))
        if item["type"] == "custom_tool_call" and isinstance(index, int):
            self._inputs.setdefault(index, InputReader())
        return {**frame, "item": encoded(item)}

    def _arguments(self, stage: str, frame: Fields) -> Fields | None:
        index = decoded(frame.get("output_index"))
        reader = self._inputs.get(index) if isinstance(index, int) else None
        if reader is not None:
            return self._input(stage, frame, reader)
        name = word(frame.get("name"))
        called = self._names.called(name).name
        return None if called == name else {**frame, "name": encoded(called)}

    def _input(self, stage: str, frame: Fields, reader: InputReader) -> Fields:
        changed = {name: value for name, value in frame.items() if name not in _OF_FUNCTIONS}
        changed["type"] = encoded(_INPUT + stage)
        if stage == "delta":
            changed["delta"] = encoded(reader.feed(word(frame.get("delta"))))
        else:
            changed["input"] = encoded(custom_input(word(frame.get("arguments"))))
        return changed

    def _response(self, response: Fields) -> Fields | None:
        given = elements(response.get("output"))
        if given is None:
            return None
        restored = [self._item(decoded(raw)) for raw in given]
        if not any(restored):
            return None
        output = [raw if one is None else one for raw, one in zip(given, restored, strict=True)]
        return {**response, "output": encoded(output)}

    def _item(self, item: Any) -> dict[str, Any] | None:
        """The item under the client's name, or None where it has that already."""
        restored = self._names.restore(item) if isinstance(item, dict) else item
        return None if restored is item else dict(restored)


_OF_FUNCTIONS = frozenset({"arguments", "delta", "name"})
