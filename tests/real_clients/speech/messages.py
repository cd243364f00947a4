"""An answer in the words of the Messages API."""

from __future__ import annotations

import json
from typing import Any

from tests.real_clients.speech.answer import (
    CACHED_TOKENS,
    COMPLETION_TOKENS,
    PROMPT_TOKENS,
    Answer,
    pieces,
)

_USAGE = {
    "input_tokens": PROMPT_TOKENS - CACHED_TOKENS,
    "cache_read_input_tokens": CACHED_TOKENS,
    "output_tokens": COMPLETION_TOKENS,
}

Block = tuple[dict[str, Any], dict[str, Any], list[dict[str, Any]]]
"""As it is in the end, as it begins, and what it grows by."""


def whole(answer: Answer) -> dict[str, Any]:
    content = [block for block, _, _ in _blocks(answer)]
    return {**_message(content, _stop(answer)), "usage": _USAGE}


def events(answer: Answer) -> list[dict[str, Any]]:
    made: list[dict[str, Any]] = [{"type": "message_start", "message": _message([], None)}]
    for index, (_, empty, deltas) in enumerate(_blocks(answer)):
        at = {"index": index}
        made.append({"type": "content_block_start", **at, "content_block": empty})
        made += [{"type": "content_block_delta", **at, "delta": delta} for delta in deltas]
        made.append({"type": "content_block_stop", **at})
    ended = {"stop_reason": _stop(answer), "stop_sequence": None}
    made.append({"type": "message_delta", "delta": ended, "usage": _USAGE})
    return [*made, {"type": "message_stop"}]


def _blocks(answer: Answer) -> list[Block]:
    made: list[Block] = []
    if answer.thinking:
        block = {"type": "thinking", "thinking": answer.thinking, "signature": "s"}
        grown = [{"type": "thinking_delta", "thinking": one} for one in pieces(answer.thinking)]
        signed = {"type": "signature_delta", "signature": "s"}
        made.append((block, {**block, "thinking": "", "signature": ""}, [*grown, signed]))
    if answer.tool:
        called = {"type": "tool_use", "id": answer.call, "name": answer.tool}
        deltas = [
            {"type": "input_json_delta", "partial_json": one} for one in pieces(answer.arguments)
        ]
        made.append(({**called, "input": _input(answer)}, {**called, "input": {}}, deltas))
    elif answer.text:
        said = [{"type": "text_delta", "text": one} for one in pieces(answer.text)]
        made.append(({"type": "text", "text": answer.text}, {"type": "text", "text": ""}, said))
    return made


def _input(answer: Answer) -> Any:
    """As this API gives it: what is no JSON cannot be told but in pieces."""
    try:
        return json.loads(answer.arguments)
    except ValueError:
        return {}


def _message(content: list[Any], stop: str | None) -> dict[str, Any]:
    return {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "model": "m",
        "content": content,
        "stop_reason": stop,
        "stop_sequence": None,
        "usage": {**_USAGE, "output_tokens": 0},
    }


def _stop(answer: Answer) -> str:
    if answer.cut:
        return "max_tokens"
    if answer.filtered:
        return "refusal"
    return "tool_use" if answer.tool else "end_turn"
