"""A whole answer as the stream that was asked for.

Some servers answer a streamed request with one JSON object. Clients take that badly: Claude Code
asks ten times more, SDKs give an empty answer. Here it becomes the events that would have made it,
so that whatever reads or translates a stream takes it as any other.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import msgspec

from gateway.protocols.fields import is_json
from gateway.records import Api

Fields = dict[str, Any]

_DONE = b"data: [DONE]\n\n"
_encode = msgspec.json.Encoder().encode


def events(api: Api, body: bytes) -> bytes:
    """The whole stream, its last event included.

    Raises:
        ValueError: the body is no answer of this API.
    """
    make = _MAKERS.get(api)
    if make is None or not is_json(body):
        raise ValueError("not an answer of this API")
    try:
        return b"".join(make(msgspec.json.decode(body)))
    except (KeyError, TypeError, AttributeError, RecursionError):
        raise ValueError("not an answer of this API") from None


def _chat(answer: Fields) -> Iterator[bytes]:
    frame = {**answer, "object": "chat.completion.chunk"}
    usage = frame.pop("usage", None)
    for choice in answer["choices"]:
        message = dict(choice["message"])
        for index, call in enumerate(message.get("tool_calls") or ()):
            call["index"] = index
        delta = {name: value for name, value in message.items() if value not in (None, [])}
        said = {**choice, "delta": delta, "finish_reason": None}
        del said["message"]
        yield _data({**frame, "choices": [said]})
        end = {"index": choice["index"], "delta": {}, "finish_reason": choice["finish_reason"]}
        yield _data({**frame, "choices": [end]})
    if usage is not None:
        yield _data({**frame, "choices": [], "usage": usage})
    yield _DONE


def _completion(answer: Fields) -> Iterator[bytes]:
    usage = answer.pop("usage", None)
    for choice in answer["choices"]:
        yield _data({**answer, "choices": [{**choice, "text": choice["text"]}]})
    if usage is not None:
        yield _data({**answer, "choices": [], "usage": usage})
    yield _DONE


def _message(answer: Fields) -> Iterator[bytes]:
    usage = answer["usage"]
    begun = {**answer, "content": [], "stop_reason": None, "stop_sequence": None}
    begun["usage"] = {**usage, "output_tokens": 0}
    yield _event("message_start", message=begun)
    for index, block in enumerate(answer["content"]):
        start, deltas = _block(block)
        yield _event("content_block_start", index=index, content_block=start)
        for delta in deltas:
            yield _event("content_block_delta", index=index, delta=delta)
        yield _event("content_block_stop", index=index)
    delta = {name: answer.get(name) for name in ("stop_reason", "stop_sequence")}
    yield _event("message_delta", delta=delta, usage=usage)
    yield _event("message_stop")


def _block(block: Fields) -> tuple[Fields, list[Fields]]:
    """How a block of a message begins, and what is added to it."""
    kind = block["type"]
    if kind == "text":
        return {**block, "text": ""}, [{"type": "text_delta", "text": block["text"]}]
    if kind == "thinking":
        deltas = [{"type": "thinking_delta", "thinking": block["thinking"]}]
        if block.get("signature"):
            deltas.append({"type": "signature_delta", "signature": block["signature"]})
        return {**block, "thinking": "", "signature": ""}, deltas
    if kind == "tool_use":
        written = _encode(block["input"]).decode()
        return {**block, "input": {}}, [{"type": "input_json_delta", "partial_json": written}]
    return block, []


def _response(answer: Fields) -> Iterator[bytes]:
    numbered = _Numbered()
    begun = {**answer, "status": "in_progress", "output": [], "usage": None}
    yield numbered("response.created", response=begun)
    yield numbered("response.in_progress", response=begun)
    for index, item in enumerate(answer["output"]):
        place = {"output_index": index, "item_id": item.get("id", "")}
        yield numbered("response.output_item.added", output_index=index, item=_begun(item))
        for kind, more in _growth(item):
            yield numbered(kind, **place, **more)
        yield numbered("response.output_item.done", output_index=index, item=item)
    ends = {"failed": "response.failed", "incomplete": "response.incomplete"}
    yield numbered(ends.get(answer["status"], "response.completed"), response=answer)


def _begun(item: Fields) -> Fields:
    """An item as it is announced."""
    begun = {**item, "status": "in_progress"}
    for name, empty in (("content", []), ("summary", []), ("arguments", ""), ("input", "")):
        if name in item:
            begun[name] = empty
    return begun


def _growth(item: Fields) -> Iterator[tuple[str, Fields]]:
    """The events between an item's announcement and its end."""
    if item["type"] == "function_call":
        written = item["arguments"]
        yield "response.function_call_arguments.delta", {"delta": written}
        yield (
            "response.function_call_arguments.done",
            {"arguments": written, "name": item.get("name", "")},
        )
    for index, part in enumerate(item.get("content") or ()):
        stem, name = _PARTS.get(part["type"], ("", ""))
        if not stem:
            continue
        at, text = {"content_index": index}, part[name]
        framed = item["type"] == "message"
        if framed:
            yield "response.content_part.added", {**at, "part": {**part, name: ""}}
        more: Fields = {"logprobs": []} if stem == "output_text" else {}
        yield f"response.{stem}.delta", {**at, **more, "delta": text}
        yield f"response.{stem}.done", {**at, **more, name: text}
        if framed:
            yield "response.content_part.done", {**at, "part": part}


_PARTS: Mapping[str, tuple[str, str]] = {
    "output_text": ("output_text", "text"),
    "refusal": ("refusal", "refusal"),
    "reasoning_text": ("reasoning_text", "text"),
}
"""A part's events and the field that grows, by its type."""


class _Numbered:
    """Writes a response's events, which are numbered."""

    def __init__(self) -> None:
        self._number = 0

    def __call__(self, kind: str, **fields: Any) -> bytes:
        written = _event(kind, sequence_number=self._number, **fields)
        self._number += 1
        return written


def _event(kind: str, **fields: Any) -> bytes:
    return b"event: %b\ndata: %b\n\n" % (kind.encode(), _encode({"type": kind, **fields}))


def _data(frame: Fields) -> bytes:
    return b"data: %b\n\n" % _encode(frame)


_MAKERS: Mapping[Api, Callable[[Fields], Iterator[bytes]]] = {
    Api.CHAT: _chat,
    Api.COMPLETIONS: _completion,
    Api.MESSAGES: _message,
    Api.RESPONSES: _response,
}
