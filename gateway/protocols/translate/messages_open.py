"""The content blocks of a Messages stream while they are being said."""

from __future__ import annotations

from typing import Any

from gateway.protocols.translate.messages_content import as_object
from gateway.protocols.translate.partial_json import ObjectText

TEXT = b'"type":"text_delta","text":'
THINKING = b'"type":"thinking_delta","thinking":'
INPUT = b'"type":"input_json_delta","partial_json":'
"""How the delta of a block begins, which says what kind of block it is."""


class Block:
    """One content block: open, or waiting with what has come of it.

    Attributes:
        field: how its deltas begin, which says what kind it is.
        pending: text not sent yet.
    """

    __slots__ = ("field", "pending")

    def __init__(self, field: bytes) -> None:
        self.field = field
        self.pending = ""

    @property
    def ready(self) -> bool:
        """Whether its start can be told."""
        return True

    @property
    def unfinished(self) -> bool:
        """Whether more is certain to come, so that nothing else can begin."""
        return False

    def start(self) -> dict[str, Any]:
        """The block as it begins."""
        if self.field is TEXT:
            return {"type": "text", "text": ""}
        return {"type": "thinking", "thinking": "", "signature": ""}

    def take(self, text: str) -> None:
        """Take in what has come of it."""
        self.pending += text

    def finish(self) -> None:
        """Nothing more comes."""


class Call(Block):
    """A tool call."""

    __slots__ = ("_arguments", "_raw", "id", "name")

    def __init__(self, call_id: str) -> None:
        super().__init__(INPUT)
        self.id = call_id
        self.name = ""
        self._arguments = ObjectText()
        self._raw = ""

    @property
    def ready(self) -> bool:
        return bool(self.name)

    @property
    def unfinished(self) -> bool:
        arguments = self._arguments
        return not (arguments.complete or (arguments.begun and arguments.broken))

    def start(self) -> dict[str, Any]:
        return {"type": "tool_use", "id": self.id, "name": self.name, "input": {}}

    def take(self, text: str) -> None:
        self.pending += self._arguments.feed(text)
        if not self._arguments.begun:
            self._raw += text

    def finish(self) -> None:
        if self._raw.strip() and not self._arguments.begun:
            self.pending = as_object(self._raw)
