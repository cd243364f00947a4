"""An answer in the words of the Responses API."""

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
    "input_tokens": PROMPT_TOKENS,
    "input_tokens_details": {"cached_tokens": CACHED_TOKENS},
    "output_tokens": COMPLETION_TOKENS,
    "output_tokens_details": {"reasoning_tokens": 0},
    "total_tokens": PROMPT_TOKENS + COMPLETION_TOKENS,
}


def whole(answer: Answer) -> dict[str, Any]:
    return _ended(answer, _items(answer))


def failed(error: dict[str, Any]) -> dict[str, Any]:
    """The event that ends one which has failed, without its number."""
    return {"type": "response.failed", "response": {**_response("failed", []), "error": error}}


def events(answer: Answer) -> list[dict[str, Any]]:
    """Without their numbers."""
    begun = _response("in_progress", [])
    made = [
        {"type": "response.created", "response": begun},
        {"type": "response.in_progress", "response": begun},
    ]
    items = _items(answer)
    for index, item in enumerate(items):
        made += _item_events(item, index)
    return [*made, {"type": f"response.{_status(answer)}", "response": _ended(answer, items)}]


def _status(answer: Answer) -> str:
    return "incomplete" if answer.cut or answer.filtered else "completed"


def _ended(answer: Answer, items: list[Any]) -> dict[str, Any]:
    ended = _response(_status(answer), items)
    if answer.cut or answer.filtered:
        reason = "max_output_tokens" if answer.cut else "content_filter"
        ended["incomplete_details"] = {"reason": reason}
    return ended


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
        "usage": None if status == "in_progress" else _USAGE,
    }


def _items(answer: Answer) -> list[dict[str, Any]]:
    made: list[dict[str, Any]] = []
    if answer.thinking:
        thoughts = [{"type": "reasoning_text", "text": answer.thinking}]
        reasoning = {"type": "reasoning", "id": "rs_1", "summary": [], "content": thoughts}
        made.append({**reasoning, "status": "completed"})
    if answer.tool:
        made.append(
            {
                "type": "function_call",
                "id": f"fc_{answer.call}",
                "call_id": answer.call,
                "name": answer.tool,
                "arguments": answer.arguments,
                "status": _status(answer),
            }
        )
    elif answer.text:
        part = {"type": "output_text", "text": answer.text, "annotations": []}
        message = {"type": "message", "id": "msg_1", "role": "assistant", "content": [part]}
        made.append({**message, "status": _status(answer)})
    return made


def _item_events(item: dict[str, Any], index: int) -> list[dict[str, Any]]:
    at = {"item_id": item["id"], "output_index": index}
    start: list[dict[str, Any]] = []
    grown: dict[str, Any]
    end: list[dict[str, Any]] = []
    if item["type"] == "function_call":
        name, text, grown = "function_call_arguments", item["arguments"], {"arguments": ""}
        finished = {"arguments": text}
    else:
        part = item["content"][0]
        name, text, grown = part["type"], part["text"], {"content": []}
        at, finished = {**at, "content_index": 0}, {"text": text}
        empty = {**part, "text": ""}
        start = [{"type": "response.content_part.added", **at, "part": empty}]
        end = [{"type": "response.content_part.done", **at, "part": part}]
    opened = {"output_index": index, "item": {**item, **grown, "status": "in_progress"}}
    return [
        {"type": "response.output_item.added", **opened},
        *start,
        *({"type": f"response.{name}.delta", **at, "delta": one} for one in pieces(text)),
        {"type": f"response.{name}.done", **at, **finished},
        *end,
        {"type": "response.output_item.done", "output_index": index, "item": item},
    ]
