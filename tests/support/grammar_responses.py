"""Which streams of the Responses API are well formed, event by event."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

from openai.types.responses import Response

from gateway.protocols.sse import Reader

Payload = dict[str, Any]

_FINAL = {"response.completed", "response.incomplete", "response.failed"}
_TEXT = {
    "response.output_text": ("message", "output_text", "text"),
    "response.refusal": ("message", "refusal", "refusal"),
    "response.reasoning_text": ("reasoning", "reasoning_text", "text"),
}
_CALL = {
    "response.function_call_arguments": ("function_call", "arguments"),
    "response.custom_tool_call_input": ("custom_tool_call", "input"),
}


def payloads(stream: bytes) -> list[Payload]:
    """The events of a stream, whose names have to agree with what they carry."""
    reader = Reader()
    found: list[Payload] = []
    for event in reader.feed(stream):
        if not event.data:
            continue
        payload = json.loads(event.data)
        assert event.event.decode() == payload["type"], event
        found.append(payload)
    assert not reader.holds, reader.pending
    return found


def check(stream: bytes) -> Payload:
    """Hold a whole stream against the grammar and return the response it ends with.

    Raises:
        AssertionError: it is not well formed.
    """
    grammar = Grammar()
    for payload in payloads(stream):
        grammar.take(payload)
    assert grammar.final is not None, "the stream has no last event"
    return grammar.final


class Grammar:
    """Takes the events in order and raises AssertionError at the first that may not stand there.

    Attributes:
        final: the response of the last event, once it has come.
    """

    def __init__(self) -> None:
        self.final: Payload | None = None
        self._number = 0
        self._head: tuple[Any, ...] = ()
        self._open: dict[int, _Item] = {}
        self._done: dict[int, Payload] = {}

    def take(self, payload: Payload) -> None:
        kind = payload["type"]
        assert self.final is None, f"{kind} after the last event"
        assert payload["sequence_number"] == self._number, payload
        self._number += 1
        if "response" in payload:
            self._lifecycle(kind, payload["response"])
        elif kind == "response.output_item.added":
            self._added(payload["output_index"], payload["item"])
        elif kind == "response.output_item.done":
            self._item(payload).done(payload["item"])
            index = payload["output_index"]
            self._done[index] = payload["item"]
            del self._open[index]
        else:
            item = self._item(payload)
            assert payload["item_id"] == item.id
            item.take(kind, payload)

    def _item(self, payload: Payload) -> _Item:
        assert payload["output_index"] in self._open, payload
        return self._open[payload["output_index"]]

    def _added(self, index: int, item: Payload) -> None:
        assert self._number > 2, "an item before response.in_progress"
        assert index == len(self._open) + len(self._done), "output indexes have a gap"
        ids = {one["id"] for one in self._done.values()} | {one.id for one in self._open.values()}
        assert item["id"] not in ids, f"{item['id']} is not new"
        self._open[index] = _Item(item)

    def _lifecycle(self, kind: str, response: Payload) -> None:
        # Codex knows more error codes than the SDK, which does not look at them.
        Response.model_validate({**response, "error": None})
        head = response["id"], response["model"]
        if self._number == 1:
            assert kind == "response.created", kind
            self._head = head
        assert head == self._head
        if kind in ("response.created", "response.in_progress"):
            assert (kind == "response.created") == (self._number == 1)
            assert response["status"] == "in_progress"
            assert response["output"] == []
            return
        assert kind in _FINAL, kind
        assert response["status"] == kind.removeprefix("response.")
        self.final = response
        if kind == "response.failed":
            assert response["error"]["code"] and response["error"]["message"]
            return
        assert not self._open, f"items are still open: {sorted(self._open)}"
        assert response["output"] == [self._done[index] for index in sorted(self._done)]
        assert response["output"], "Codex asks again where there is no item"
        assert (response["incomplete_details"] is not None) == (kind == "response.incomplete")


class _Item:
    """One item from its announcement to its end."""

    def __init__(self, item: Payload) -> None:
        assert item["status"] == "in_progress"
        self.id = item["id"]
        self._type = item["type"]
        self._item = item
        self._text = ""
        self._said: Payload | None = None
        self._part: Payload | None = None
        self._stage = "announced" if item["type"] == "message" else "open"
        assert not item.get("content") and not item.get("arguments") and not item.get("input")

    def take(self, kind: str, payload: Payload) -> None:
        if kind.startswith("response.content_part."):
            self._content_part(kind, payload["part"])
            return
        name, _, stage = kind.rpartition(".")
        assert self._stage == "open", kind
        if name in _TEXT:
            item, part, field = _TEXT[name]
            assert payload["content_index"] == 0
            if self._part is not None:
                assert self._part["type"] == part
        else:
            item, field = _CALL[name]
        assert item == self._type, kind
        if stage == "delta":
            assert payload["delta"], "an empty delta"
            self._text += payload["delta"]
        else:
            assert stage == "done"
            assert payload[field] == self._text
            self._stage = "said"

    def _content_part(self, kind: str, part: Payload) -> None:
        assert self._type == "message"
        if kind.endswith(".added"):
            assert self._stage == "announced"
            self._part, self._stage = part, "open"
        else:
            assert self._stage == "said"
            self._said, self._stage = part, "ended"

    def done(self, item: Payload) -> None:
        assert self._stage == ("ended" if self._type == "message" else "said")
        same = ("id", "type", "role", "name", "namespace", "call_id")
        assert [item.get(name) for name in same] == [self._item.get(name) for name in same]
        assert item["status"] in ("completed", "incomplete")
        assert _text_of(item) == self._text
        if self._said is not None:
            assert item["content"] == [self._said]


def _text_of(item: Payload) -> str:
    for name in ("arguments", "input"):
        if name in item:
            return str(item[name])
    return "".join(_texts(item["content"]))


def _texts(content: Iterable[Payload]) -> Iterable[str]:
    for part in content:
        yield part["refusal"] if part["type"] == "refusal" else part["text"]
