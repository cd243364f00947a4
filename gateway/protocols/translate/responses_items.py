"""The items of a Responses conversation as chat messages.

Three rules keep the engine's prefix cache. What an item becomes depends on the items before it
only, so that a turn begins with exactly the messages of the one before. Words that are added, for
what chat cannot say, are always the same. And system text after the beginning stays where it is,
as user text, since templates want the system message first.
"""

from __future__ import annotations

from typing import Any

import msgspec

from gateway.protocols.translate import responses_notes as notes
from gateway.protocols.translate.bad_fields import fault
from gateway.protocols.translate.responses_parts import (
    ABSENT,
    Content,
    Part,
    given,
    read,
)
from gateway.protocols.translate.responses_tools import Called, Names

_SYSTEM = ("system", "developer")
SEND_ALL = "Send the whole conversation in `input`: responses are not kept for this model"

Message = dict[str, Any]


class Item(msgspec.Struct, gc=False):
    """One item, as far as its kind is known to be one that is translated."""

    type: str | None = None
    role: str | None = None
    id: str | None = None
    content: Content = None
    summary: list[Part] | None = None
    call_id: str | None = None
    name: str | None = None
    namespace: str | None = None
    arguments: Any = None
    input: str | None = None
    output: str | list[Part] | Part | None = None
    action: msgspec.Raw = ABSENT
    operation: msgspec.Raw = ABSENT


class _Turn(msgspec.Struct, gc=False):
    """What the assistant did, between two things that others said."""

    reasoning: list[str]
    texts: list[str]
    calls: list[Message]

    def message(self) -> Message:
        message: Message = {"role": "assistant", "content": "\n".join(self.texts)}
        if self.reasoning:
            message["reasoning"] = "\n".join(self.reasoning)
        if self.calls:
            message["tool_calls"] = self.calls
        return message


_members = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode


class Conversation:
    """Takes the items in order and makes messages of them.

    Attributes:
        messages: complete once `close` has been called.
    """

    def __init__(self, names: Names, instructions: str | None) -> None:
        self.messages: list[Message] = []
        self._names = names
        self._leading: list[str] | None = [instructions] if instructions else []
        self._turn: _Turn | None = None
        self._awaited = 0
        self._media: list[Message] = []
        self._held: list[Message] = []

    def add(self, item: Item) -> None:
        """Take the next item.

        Raises:
            BadRequest: it cannot be told to a chat server; the path begins within the item.
        """
        kind = item.type or ("message" if item.role else "item_reference" if item.id else "")
        if kind == "message":
            self._add_message(item)
        elif kind == "reasoning":
            self._add_reasoning(item)
        elif kind == "function_call":
            arguments = item.arguments if item.arguments is not None else ""
            if not isinstance(arguments, str):
                raise fault("arguments", "has to be a string of JSON")
            self._add_call(item, as_object(arguments))
        elif kind == "custom_tool_call":
            self._add_call(item, _json({"input": item.input or ""}), custom=True)
        elif kind in ("function_call_output", "custom_tool_call_output"):
            self._add_result(item)
        else:
            self._add_other(kind, item)

    def user(self, content: str | list[Message]) -> None:
        """What the user says; after the results of tools that are still to come."""
        self._begin()
        self._end_turn()
        message = {"role": "user", "content": content}
        if self._awaited:
            self._held.append(message)
        else:
            self._settle()
            self.messages.append(message)

    def close(self) -> None:
        self._begin()
        self._end_turn()
        self._settle()

    def _add_message(self, item: Item) -> None:
        found = read(item.content, "content")
        role = item.role
        if role == "user" or (role in _SYSTEM and self._leading is None):
            self.user(found.content())
        elif role != "assistant" and role not in _SYSTEM:
            raise fault("role", "has to be user, assistant, system or developer")
        elif found.parts:
            raise fault("content", f"has to be text in a message of the role {role}")
        elif role == "assistant":
            self._assistant().texts += ["".join(found.texts)] if found.texts else []
        elif self._leading is not None:
            self._leading += ["\n".join(found.texts)] if found.texts else []

    def _add_reasoning(self, item: Item) -> None:
        """What is only there encrypted nobody here can read."""
        found = read(item.content, "content").texts or read(item.summary, "summary").texts
        if found:
            self._assistant().reasoning += found

    def _add_call(
        self, item: Item, arguments: str, *, custom: bool = False, name: str = ""
    ) -> None:
        name = name or item.name or ""
        if not name:
            raise fault("name", "has to be a non-empty string")
        function = self._names.function(Called(name, item.namespace or None, custom))
        self._assistant().calls.append(
            {
                "id": _call_id(item),
                "type": "function",
                "function": {"name": function, "arguments": arguments},
            }
        )

    def _add_result(self, item: Item) -> None:
        """Chat knows text as a tool's result; images follow as a user's, behind all results."""
        call_id, output = _call_id(item), item.output
        found = read([output] if isinstance(output, Part) else output, "output")
        self._begin()
        self._end_turn()
        self._awaited = max(0, self._awaited - 1)
        text = "\n".join(found.texts)
        if found.parts:
            where = f"(the output of tool call {call_id} goes on below)"
            text = f"{text}\n{where}" if text else where
            self._media += [
                {"type": "text", "text": f"Output of tool call {call_id}:"},
                *found.media,
            ]
        self.messages.append({"role": "tool", "tool_call_id": call_id, "content": text})

    def _add_other(self, kind: str, item: Item) -> None:
        """What the API's operator would run, or has left behind."""
        if kind in notes.CALLS:
            did = given(item.action) or given(item.operation) or _json(item.arguments).encode()
            self._add_call(item, as_object(bytes(did).decode()), name=notes.CALLS[kind])
        elif kind in notes.RESULTS:
            self._add_result(item)
        elif kind in notes.NOTED:
            self._assistant().texts.append(notes.note(kind, item.name, given(item.action)))
        elif kind in notes.COMPACTED:
            self.user(notes.COMPACTION)
        elif kind == "item_reference":
            raise fault("", f"refers to a stored item. {SEND_ALL}")
        elif kind not in notes.SILENT:
            raise fault("type", f"is `{kind[:50]}`, which is not known here; leave it out")

    def _assistant(self) -> _Turn:
        """What the assistant does now, all of which becomes one message."""
        if self._turn is None:
            self._begin()
            self._settle()
            self._turn = _Turn([], [], [])
        return self._turn

    def _begin(self) -> None:
        """Everything from here on is no longer the beginning."""
        if self._leading is not None:
            if self._leading:
                self.messages.append({"role": "system", "content": "\n\n".join(self._leading)})
            self._leading = None

    def _end_turn(self) -> None:
        if self._turn is not None:
            self.messages.append(self._turn.message())
            self._awaited = len(self._turn.calls)
            self._turn = None

    def _settle(self) -> None:
        """No more results will come: say what had to wait for them."""
        if self._media:
            self.messages.append({"role": "user", "content": self._media})
            self._media = []
        if self._held:
            self.messages += self._held
            self._held = []
        self._awaited = 0


def _call_id(item: Item) -> str:
    call_id = item.call_id or (item.id if item.type and item.type.startswith("local_shell") else "")
    if not call_id:
        raise fault("call_id", "has to be a non-empty string")
    return call_id


def as_object(arguments: str) -> str:
    """A call's arguments as a JSON object, which is what templates read them as.

    A model's call that was cut off comes back with every later turn.
    """
    try:
        _members(arguments)
    except (msgspec.DecodeError, RecursionError):
        return _json({"unparsed_arguments": arguments}) if arguments.strip() else "{}"
    return arguments


def _json(value: Any) -> str:
    return msgspec.json.encode(value).decode()
