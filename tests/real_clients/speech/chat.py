"""An answer in the words of the Chat API, thoughts as vLLM tells them."""

from __future__ import annotations

from typing import Any

from tests.real_clients.speech.answer import (
    CACHED_TOKENS,
    COMPLETION_TOKENS,
    PROMPT_TOKENS,
    Answer,
    pieces,
)

_USAGE = {
    "prompt_tokens": PROMPT_TOKENS,
    "completion_tokens": COMPLETION_TOKENS,
    "total_tokens": PROMPT_TOKENS + COMPLETION_TOKENS,
    "prompt_tokens_details": {"cached_tokens": CACHED_TOKENS},
}


def whole(answer: Answer) -> dict[str, Any]:
    message: dict[str, Any] = {"role": "assistant", "content": answer.text or None}
    if answer.thinking:
        message["reasoning"] = answer.thinking
    if answer.tool:
        message["tool_calls"] = [_call(answer, answer.arguments)]
    choice = {"index": 0, "message": message, "finish_reason": _finish(answer)}
    return _chat("chat.completion", [choice], _USAGE)


def events(answer: Answer) -> list[dict[str, Any]]:
    """Without the word that ends them."""
    made = [_delta({"role": "assistant", "content": ""}), _delta({"content": ""})]
    made += [_delta({"reasoning": piece}) for piece in pieces(answer.thinking)]
    if answer.tool:
        made.append(_delta({"tool_calls": [{"index": 0, **_call(answer, "")}]}))
    for piece in pieces(answer.said):
        if answer.tool:
            grown = {"index": 0, "function": {"arguments": piece}}
            made.append(_delta({"tool_calls": [grown]}))
        else:
            made.append(_delta({"content": piece}))
    made.append(_delta({}, _finish(answer)))
    return [*made, _chat("chat.completion.chunk", [], _USAGE)]


def _chat(kind: str, choices: list[Any], usage: Any = None) -> dict[str, Any]:
    return {
        "id": "chatcmpl-1",
        "object": kind,
        "created": 1,
        "model": "m",
        "choices": choices,
        "usage": usage,
    }


def _delta(content: dict[str, Any], finish: str | None = None) -> dict[str, Any]:
    choice = {"index": 0, "delta": content, "finish_reason": finish}
    return _chat("chat.completion.chunk", [choice])


def _call(answer: Answer, arguments: str) -> dict[str, Any]:
    function = {"name": answer.tool, "arguments": arguments}
    return {"id": answer.call, "type": "function", "function": function}


def _finish(answer: Answer) -> str:
    if answer.cut:
        return "length"
    if answer.filtered:
        return "content_filter"
    return "tool_calls" if answer.tool else "stop"
