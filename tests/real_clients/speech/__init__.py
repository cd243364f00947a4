"""What a scripted engine says, in the words of each API: whole, or as the events of a stream."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from gateway.records import Api

PROMPT_TOKENS, CACHED_TOKENS, COMPLETION_TOKENS = 1200, 400, 12


@dataclass(frozen=True)
class Answer:
    """One turn of the model: some text, or a call of a tool of the client's.

    Attributes:
        call: the id is made from it, so it differs between the turns of a test.
    """

    text: str = ""
    tool: str = ""
    arguments: str = "{}"
    call: str = "call_1"

    def pieces(self) -> list[str]:
        """What is generated, in the pieces that it is streamed in."""
        words = (self.arguments if self.tool else self.text).split(" ")
        return [words[0], *(" " + word for word in words[1:])]


def events(api: Api, answer: Answer) -> list[bytes]:
    """A whole stream. The first two events carry no token."""
    if api is Api.MESSAGES:
        return [_named(one) for one in _messages_events(answer)]
    if api is Api.RESPONSES:
        listed = enumerate(_responses_events(answer))
        return [_named({**one, "sequence_number": number}) for number, one in listed]
    return [b"data: " + _json(one) + b"\n\n" for one in _chat_events(answer)] + [
        b"data: [DONE]\n\n"
    ]


def whole(api: Api, answer: Answer) -> bytes:
    """The same as one reply."""
    if api is Api.MESSAGES:
        return _json({**_message([_block(answer)], _stop(answer)), "usage": _MESSAGE_USAGE})
    if api is Api.RESPONSES:
        return _json(_response("completed", [_item(answer)]))
    return _json(_chat_whole(answer))


def _json(value: Any) -> bytes:
    return json.dumps(value, separators=(",", ":")).encode()


def _named(event: dict[str, Any]) -> bytes:
    return b"event: %b\ndata: %b\n\n" % (event["type"].encode(), _json(event))


# Chat

_CHAT_USAGE = {
    "prompt_tokens": PROMPT_TOKENS,
    "completion_tokens": COMPLETION_TOKENS,
    "total_tokens": PROMPT_TOKENS + COMPLETION_TOKENS,
    "prompt_tokens_details": {"cached_tokens": CACHED_TOKENS},
}


def _chat(kind: str, choices: list[Any], usage: Any = None) -> dict[str, Any]:
    return {
        "id": "chatcmpl-1",
        "object": kind,
        "created": 1,
        "model": "m",
        "choices": choices,
        "usage": usage,
    }


def _call(answer: Answer, arguments: str) -> dict[str, Any]:
    function = {"name": answer.tool, "arguments": arguments}
    return {"id": answer.call, "type": "function", "function": function}


def _finish(answer: Answer) -> str:
    return "tool_calls" if answer.tool else "stop"


def _chat_whole(answer: Answer) -> dict[str, Any]:
    message: dict[str, Any] = {"role": "assistant", "content": answer.text or None}
    if answer.tool:
        message["tool_calls"] = [_call(answer, answer.arguments)]
    choice = {"index": 0, "message": message, "finish_reason": _finish(answer)}
    return _chat("chat.completion", [choice], _CHAT_USAGE)


def _chat_events(answer: Answer) -> list[dict[str, Any]]:
    def delta(content: dict[str, Any], finish: str | None = None) -> dict[str, Any]:
        choice = {"index": 0, "delta": content, "finish_reason": finish}
        return _chat("chat.completion.chunk", [choice])

    made = [delta({"role": "assistant", "content": ""}), delta({"content": ""})]
    if answer.tool:
        made.append(delta({"tool_calls": [{"index": 0, **_call(answer, "")}]}))
    for piece in answer.pieces():
        if answer.tool:
            grown = {"index": 0, "function": {"arguments": piece}}
            made.append(delta({"tool_calls": [grown]}))
        else:
            made.append(delta({"content": piece}))
    made.append(delta({}, _finish(answer)))
    return [*made, _chat("chat.completion.chunk", [], _CHAT_USAGE)]


# Messages

_MESSAGE_USAGE = {
    "input_tokens": PROMPT_TOKENS - CACHED_TOKENS,
    "cache_read_input_tokens": CACHED_TOKENS,
    "output_tokens": COMPLETION_TOKENS,
}


def _message(content: list[Any], stop: str | None) -> dict[str, Any]:
    return {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "model": "m",
        "content": content,
        "stop_reason": stop,
        "stop_sequence": None,
        "usage": {**_MESSAGE_USAGE, "output_tokens": 0},
    }


def _stop(answer: Answer) -> str:
    return "tool_use" if answer.tool else "end_turn"


def _block(answer: Answer, *, empty: bool = False) -> dict[str, Any]:
    if answer.tool:
        given = {} if empty else json.loads(answer.arguments)
        return {"type": "tool_use", "id": answer.call, "name": answer.tool, "input": given}
    return {"type": "text", "text": "" if empty else answer.text}


def _messages_events(answer: Answer) -> list[dict[str, Any]]:
    def delta(piece: str) -> dict[str, Any]:
        if answer.tool:
            made = {"type": "input_json_delta", "partial_json": piece}
        else:
            made = {"type": "text_delta", "text": piece}
        return {"type": "content_block_delta", "index": 0, "delta": made}

    ended = {"stop_reason": _stop(answer), "stop_sequence": None}
    block = _block(answer, empty=True)
    return [
        {"type": "message_start", "message": _message([], None)},
        {"type": "content_block_start", "index": 0, "content_block": block},
        *(delta(piece) for piece in answer.pieces()),
        {"type": "content_block_stop", "index": 0},
        {"type": "message_delta", "delta": ended, "usage": _MESSAGE_USAGE},
        {"type": "message_stop"},
    ]


# Responses

_RESPONSE_USAGE = {
    "input_tokens": PROMPT_TOKENS,
    "input_tokens_details": {"cached_tokens": CACHED_TOKENS},
    "output_tokens": COMPLETION_TOKENS,
    "output_tokens_details": {"reasoning_tokens": 0},
    "total_tokens": PROMPT_TOKENS + COMPLETION_TOKENS,
}


def _response(status: str, output: list[Any]) -> dict[str, Any]:
    return {
        "id": "resp_1",
        "object": "response",
        "created_at": 1,
        "status": status,
        "error": None,
        "incomplete_details": None,
        "model": "m",
        "output": output,
        "parallel_tool_calls": True,
        "tool_choice": "auto",
        "tools": [],
        "usage": _RESPONSE_USAGE if status == "completed" else None,
    }


def _item(answer: Answer, *, empty: bool = False) -> dict[str, Any]:
    status = "in_progress" if empty else "completed"
    if answer.tool:
        return {
            "type": "function_call",
            "id": f"fc_{answer.call}",
            "call_id": answer.call,
            "name": answer.tool,
            "arguments": "" if empty else answer.arguments,
            "status": status,
        }
    part = {"type": "output_text", "text": answer.text, "annotations": []}
    content = [] if empty else [part]
    common = {"type": "message", "id": "msg_1", "role": "assistant"}
    return {**common, "status": status, "content": content}


def _responses_events(answer: Answer) -> list[dict[str, Any]]:
    item = _item(answer)
    at = {"item_id": item["id"], "output_index": 0}
    opened = {"type": "response.output_item.added", "output_index": 0}
    closed = {"type": "response.output_item.done", "output_index": 0, "item": item}
    if answer.tool:
        name, start, end = "function_call_arguments", [], []
        finished: dict[str, Any] = {"arguments": answer.arguments}
    else:
        name, at = "output_text", {**at, "content_index": 0}
        part = {"type": "output_text", "text": "", "annotations": []}
        start = [{"type": "response.content_part.added", **at, "part": part}]
        end = [{"type": "response.content_part.done", **at, "part": item["content"][0]}]
        finished = {"text": answer.text}
    return [
        {"type": "response.created", "response": _response("in_progress", [])},
        {"type": "response.in_progress", "response": _response("in_progress", [])},
        {**opened, "item": _item(answer, empty=True)},
        *start,
        *({"type": f"response.{name}.delta", **at, "delta": one} for one in answer.pieces()),
        {"type": f"response.{name}.done", **at, **finished},
        *end,
        closed,
        {"type": "response.completed", "response": _response("completed", [item])},
    ]
