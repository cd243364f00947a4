"""Conversations as prompts."""

from __future__ import annotations

from array import array
from collections.abc import Iterable
from typing import Any

import msgspec

from gateway.simulator import tokenizer


class ChatMessage(msgspec.Struct):
    """One turn, as chat completions and Messages have it."""

    role: str
    content: Any = None
    tool_calls: Any = None


def prompt_of(
    messages: Iterable[ChatMessage], tools: Any = None, *, generate: bool = True
) -> array[int]:
    """The tokens of a conversation; tools stand in front."""
    turns = [("tools", as_json(tools))] if tools else []
    for message in messages:
        calls = as_json(message.tool_calls) if message.tool_calls else ""
        turns.append((message.role, text_of(message.content) + calls))
    return tokenizer.conversation(turns, generate=generate)


def text_of(content: Any) -> str:
    """The text of a message's content; parts that are not text count as their JSON."""
    if content is None:
        return ""
    if isinstance(content, str):
        return content
    parts: Iterable[Any] = content if isinstance(content, list) else [content]
    return "".join(map(_part, parts))


def as_json(content: object) -> str:
    """Tools and the like, as they stand in a prompt."""
    return msgspec.json.encode(content, order="sorted").decode()


def _part(part: Any) -> str:
    text = part.get("text") if isinstance(part, dict) else part
    return text if isinstance(text, str) else as_json(part)
