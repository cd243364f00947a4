"""A whole chat reply as a Messages reply, and what both kinds of answer share."""

from __future__ import annotations

from typing import Any

import msgspec

from gateway.protocols.translate import chat_frames
from gateway.protocols.translate.messages_content import as_object
from gateway.records import Usage

_STOPS = {
    "length": "max_tokens",
    "tool_calls": "tool_use",
    "function_call": "tool_use",
    "content_filter": "refusal",
}


def whole(reply: bytes, *, model: str, request_id: str) -> bytes:
    """An unstreamed chat reply as Messages has it.

    Raises:
        ValueError: it is no chat reply.
    """
    choice, chat = chat_frames.reply(reply)
    said = choice.message or chat_frames.Delta()
    blocks: list[dict[str, Any]] = []
    if said.thought:
        signature = signed(request_id)
        blocks.append({"type": "thinking", "thinking": said.thought, "signature": signature})
    if said.content:
        blocks.append({"type": "text", "text": said.content})
    if said.refusal:
        blocks.append({"type": "text", "text": said.refusal})
    calls = said.tool_calls or []
    for number, call in enumerate(calls):
        function = call.function or chat_frames.Function()
        blocks.append(
            {
                "type": "tool_use",
                "id": call.id or call_id(request_id, number),
                "name": function.name or "",
                "input": msgspec.Raw(as_object(function.text).encode()),
            }
        )
    message = opening(model, request_id)
    # Much code takes the first block for granted.
    message["content"] = blocks or [{"type": "text", "text": ""}]
    message |= stop(
        choice.finish_reason, choice.stop_reason, calls=bool(calls), refused=bool(said.refusal)
    )
    message["usage"] = usage(chat.counts)
    return msgspec.json.encode(message)


def opening(model: str, request_id: str) -> dict[str, Any]:
    """A message of which nothing is known but who says it."""
    return {
        "id": f"msg_{request_id}",
        "type": "message",
        "role": "assistant",
        "model": model,
        "content": [],
        "stop_reason": None,
        "stop_sequence": None,
        "usage": usage(None),
    }


def stop(
    finish_reason: str | None, stop_reason: str | int | None, *, calls: bool, refused: bool
) -> dict[str, Any]:
    """`stop_reason` and `stop_sequence`.

    Args:
        finish_reason: the chat server's.
        stop_reason: vLLM's: text is the stop sequence that was met.
        calls: whether tools are called; a server that was told which one says `stop`.
        refused: whether the answer is a refusal.
    """
    reason = _STOPS.get(finish_reason or "", "end_turn")
    if reason == "end_turn":
        if refused:
            reason = "refusal"
        elif isinstance(stop_reason, str):
            return {"stop_reason": "stop_sequence", "stop_sequence": stop_reason}
        elif calls:
            reason = "tool_use"
    return {"stop_reason": reason, "stop_sequence": None}


def usage(counts: Usage | None) -> dict[str, int]:
    """Token counts; what was read from the cache is no part of `input_tokens`."""
    counts = counts or Usage()
    return {
        "input_tokens": max(0, counts.prompt - counts.cached),
        "cache_creation_input_tokens": 0,
        "cache_read_input_tokens": counts.cached,
        "output_tokens": counts.completion,
    }


def signed(request_id: str) -> str:
    """The signature that a thinking block must have; nobody checks it."""
    return f"sig_{request_id}"


def call_id(request_id: str, number: int) -> str:
    """The id of a call to which the server gave none."""
    return f"toolu_{request_id}_{number}"
