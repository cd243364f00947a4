"""A chat stream as the events of a response.

One text item is open at a time; tool calls stay open, side by side, until the answer has stopped,
since a chat stream may take up any of them again. Their `done` must not come earlier: Codex runs a
call as soon as it is done.
"""

from __future__ import annotations

from typing import Any

import msgspec

from gateway.errors import GatewayError
from gateway.protocols import faults
from gateway.protocols.sse import Event
from gateway.protocols.translate.chat_frames import Delta, ToolCall, frame
from gateway.protocols.translate.custom_input import InputReader
from gateway.protocols.translate.responses_reply import (
    REASONING,
    REFUSAL,
    TEXT,
    Answer,
    Item,
    TextKind,
    status_of,
    usage_of,
)
from gateway.records import Api

_encode = msgspec.json.encode


class _Text:
    """A text item while it grows."""

    __slots__ = ("before", "id", "index", "kind", "pieces")

    def __init__(self, kind: TextKind, item_id: str, index: int) -> None:
        self.kind = kind
        self.id = item_id
        self.index = index
        self.pieces: list[str] = []
        more: dict[str, Any] = {"logprobs": []} if kind is TEXT else {}
        self.before = _before(f"{kind.event}.delta", **self.place, **more)

    @property
    def place(self) -> dict[str, Any]:
        return {"item_id": self.id, "output_index": self.index, "content_index": 0}

    def item(self, content: list[Any], status: str) -> Item:
        return self.kind.output(self.id, content, status)


class _Call:
    """A tool call while it grows; without a name it has not been announced."""

    __slots__ = ("arguments", "before", "call_id", "given", "id", "index", "name", "reader")

    def __init__(self, given: str | None) -> None:
        self.given = given
        self.call_id = ""
        self.name = ""
        self.id = ""
        self.index = 0
        self.arguments: list[str] = []
        self.reader: InputReader | None = None
        self.before = b""

    @property
    def event(self) -> str:
        return (
            "response.function_call_arguments"
            if self.reader is None
            else "response.custom_tool_call_input"
        )


class ResponsesStream:
    """One chat stream on its way to a client of the Responses API: a `StreamTranslation`."""

    __slots__ = (
        "_answer",
        "_at",
        "_calls",
        "_finish",
        "_latest",
        "_number",
        "_output",
        "_text",
        "_usage",
    )

    def __init__(self, answer: Answer) -> None:
        self._answer = answer
        self._number = 0
        self._output: list[Item] = []
        self._text: _Text | None = None
        self._calls: list[_Call] = []
        self._at: dict[int, _Call] = {}
        self._latest = 0
        self._finish: str | None = None
        self._usage: dict[str, Any] | None = None

    def feed(self, event: Event) -> bytes:
        chat = frame(event)
        if chat is None:
            return b""
        choices = [choice for choice in chat.choices or () if choice.index == 0]
        out = [] if self._number else [self._opening()]
        for choice in choices:
            if choice.delta is not None:
                self._say(choice.delta, out)
            if choice.finish_reason:
                self._finish = choice.finish_reason
                self._end_items(out)
        if chat.usage is not None:
            self._usage = usage_of(chat) or self._usage
        return b"".join(out)

    def close(self) -> bytes:
        out = [] if self._number else [self._opening()]
        self._end_items(out)
        if not self._output:
            self._begin_text(TEXT, out)
            self._end_items(out)
        response = self._answer.ended(self._finish, self._output, self._usage)
        out.append(self._event(f"response.{response['status']}", response=response))
        return b"".join(out)

    def fail(self, error: GatewayError, request_id: str) -> bytes:
        """Open items stay open: Codex would run a call that was closed half-way."""
        answer = self._answer
        return faults.stream_event(
            Api.RESPONSES,
            error,
            request_id,
            self._number,
            response_id=answer.id,
            model=answer.model,
        )

    def keep_alive(self) -> bytes:
        """Codex's idle timer counts events, not comments; the SDK takes this one at any time."""
        if not self._number:
            return self._opening()
        return self._event("response.in_progress", response=self._answer.begun())

    def _opening(self) -> bytes:
        begun = self._answer.begun()
        created = self._event("response.created", response=begun)
        return created + self._event("response.in_progress", response=begun)

    def _say(self, delta: Delta, out: list[bytes]) -> None:
        thought = delta.thought
        if thought:
            self._add_text(REASONING, thought, out)
        if delta.content:
            self._add_text(TEXT, delta.content, out)
        if delta.refusal:
            self._add_text(REFUSAL, delta.refusal, out)
        for piece in delta.tool_calls or ():
            self._add_call(piece, out)

    def _add_text(self, kind: TextKind, piece: str, out: list[bytes]) -> None:
        text = self._text
        if text is None or text.kind is not kind:
            text = self._begin_text(kind, out)
        text.pieces.append(piece)
        out.append(self._delta(text.before, piece))

    def _begin_text(self, kind: TextKind, out: list[bytes]) -> _Text:
        self._end_text(out, "completed")
        index = len(self._output)
        text = self._text = _Text(kind, self._answer.item_id(kind.item, index), index)
        self._begin_item(text.item([], "in_progress"), out)
        if kind.announced:
            part = kind.content("")
            out.append(self._event("response.content_part.added", **text.place, part=part))
        return text

    def _end_text(self, out: list[bytes], status: str) -> None:
        text = self._text
        if text is None:
            return
        self._text = None
        kind, place = text.kind, text.place
        said = "".join(text.pieces)
        more: dict[str, Any] = {"logprobs": []} if kind is TEXT else {}
        out.append(self._event(f"{kind.event}.done", **place, **{kind.field: said}, **more))
        part = kind.content(said)
        if kind.announced:
            out.append(self._event("response.content_part.done", **place, part=part))
        self._end_item(text.index, text.item([part], status), out)

    def _add_call(self, piece: ToolCall, out: list[bytes]) -> None:
        function = piece.function
        name = function.name if function is not None else None
        call = self._call(piece, name)
        arguments = function.text if function is not None else ""
        if arguments:
            call.arguments.append(arguments)
        if call.before:
            self._add_arguments(call, arguments, out)
        elif name:
            self._begin_call(call, name, out)

    def _call(self, piece: ToolCall, name: str | None) -> _Call:
        """The call that a piece belongs to.

        Some servers number no calls or all alike: another id with a name begins another call.
        """
        index = self._latest if piece.index is None else piece.index
        call = self._at.get(index)
        if call is not None and call.name and name and piece.id not in (None, call.given):
            call = None
        self._latest = index
        if call is None:
            call = self._at[index] = _Call(piece.id)
            self._calls.append(call)
        call.given = call.given or piece.id
        return call

    def _begin_call(self, call: _Call, name: str, out: list[bytes]) -> None:
        self._end_text(out, "completed")
        answer, call.index, call.name = self._answer, len(self._output), name
        call.call_id = answer.call_id(call.given, self._output)
        if answer.names.called(name).custom:
            call.reader = InputReader()
        item = answer.call(call.index, call.call_id, name, "", "in_progress")
        call.id = item["id"]
        call.before = _before(f"{call.event}.delta", item_id=call.id, output_index=call.index)
        self._begin_item(item, out)
        self._add_arguments(call, "".join(call.arguments), out)

    def _add_arguments(self, call: _Call, piece: str, out: list[bytes]) -> None:
        said = piece if call.reader is None else call.reader.feed(piece)
        if said:
            out.append(self._delta(call.before, said))

    def _end_call(self, call: _Call, out: list[bytes], status: str) -> None:
        if call.reader is not None and (rest := call.reader.close()):
            out.append(self._delta(call.before, rest))
        elif call.reader is None and not call.arguments:
            call.arguments.append("{}")
            out.append(self._delta(call.before, "{}"))
        arguments = "".join(call.arguments)
        item = self._answer.call(call.index, call.call_id, call.name, arguments, status)
        field = "arguments" if call.reader is None else "input"
        place = {"item_id": call.id, "output_index": call.index}
        out.append(self._event(f"{call.event}.done", **place, **{field: item[field]}))
        self._end_item(call.index, item, out)

    def _end_items(self, out: list[bytes]) -> None:
        """Close what is open: the answer has stopped, and where it was cut, its last item was."""
        for call in self._calls:
            if not call.before:
                self._begin_call(call, "", out)
        last = len(self._output) - 1
        status = status_of(self._finish)
        if self._text is not None:
            self._end_text(out, status if self._text.index == last else "completed")
        for call in self._calls:
            self._end_call(call, out, status if call.index == last else "completed")
        self._calls.clear()
        self._at.clear()
        self._latest = 0

    def _begin_item(self, item: Item, out: list[bytes]) -> None:
        index = len(self._output)
        self._output.append(item)
        out.append(self._event("response.output_item.added", output_index=index, item=item))

    def _end_item(self, index: int, item: Item, out: list[bytes]) -> None:
        self._output[index] = item
        out.append(self._event("response.output_item.done", output_index=index, item=item))

    def _event(self, name: str, **fields: Any) -> bytes:
        data = _encode({"type": name, "sequence_number": self._number, **fields})
        self._number += 1
        return b"event: %b\ndata: %b\n\n" % (name.encode(), data)

    def _delta(self, before: bytes, text: str) -> bytes:
        """An event of which all but the number and the text is known."""
        number = self._number
        self._number = number + 1
        return b'%b%d,"delta":%b}\n\n' % (before, number, _encode(text))


def _before(name: str, **fields: Any) -> bytes:
    """A delta event up to its number."""
    known = _encode({"type": name, **fields})[:-1]
    return b'event: %b\ndata: %b,"sequence_number":' % (name.encode(), known)
