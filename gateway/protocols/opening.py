"""How a request's conversation begins, read from its fields, for each API."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

import msgspec

from gateway.protocols.fields import Fields
from gateway.records import Api

_BILLING = "x-anthropic-billing-header"
_SYSTEM = ("system", "developer")
_GAP = re.compile(r"[ \t\n\r,]*")
_scan = json.JSONDecoder().raw_decode


def opening(api: Api, fields: Fields) -> bytes:
    """System text and first user message: what stays the same while a conversation grows.

    Marks that move between turns (`cache_control`) and Claude Code's billing line, which changes
    with every request, are left out. For an API without conversations it is the whole input.
    """
    if api is Api.CHAT:
        texts = _until_user(fields, "messages")
    elif api is Api.MESSAGES:
        texts = _texts(_decoded(fields, "system")) + _until_user(fields, "messages")
    elif api is Api.RESPONSES:
        texts = _texts(_decoded(fields, "instructions")) + _until_user(fields, "input")
    else:
        return b"\0".join(
            name.encode() + b"\0" + bytes(raw) for name, raw in fields.items() if name != "model"
        )
    return "\0".join(texts).encode("utf-8", "surrogatepass")


def echoed(api: Api, fields: Fields) -> str | None:
    """The text that an answer repeats before it generates, where `echo` asks for it.

    For several prompts at once the longest stands for all: better a first token a little late
    than one that was not generated. Prompts given as token ids have no text to go by.
    """
    if _decoded(fields, "echo") is not True or _decoded(fields, "return_token_ids") is True:
        return None  # vLLM leaves the text of the prompt out where it gives its token ids
    if api is Api.COMPLETIONS:
        prompt = _decoded(fields, "prompt")
        prompts = prompt if isinstance(prompt, list) else [prompt]
        return max((p for p in prompts if isinstance(p, str)), key=len, default=None) or None
    if api is Api.CHAT:
        return _echoed_message(fields)
    return None


def _echoed_message(fields: Fields) -> str | None:
    """vLLM gives the last message back if it has the role of the answer."""
    messages = _decoded(fields, "messages")
    last = messages[-1] if isinstance(messages, list) and messages else None
    if not isinstance(last, dict):
        return None
    answers = _decoded(fields, "add_generation_prompt") is not False
    if answers and last.get("role") != "assistant":
        return None
    return "".join(_texts(last.get("content"))) or None


def _decoded(fields: Fields, name: str) -> Any:
    raw = fields.get(name)
    if raw is None:
        return None
    try:
        return msgspec.json.decode(raw)
    except (msgspec.DecodeError, RecursionError):
        return None


def _until_user(fields: Fields, name: str) -> list[str]:
    """The system texts before the first user message, and that message."""
    if name not in fields:
        return []
    texts: list[str] = []
    for message in _elements(bytes(fields[name]).decode()):
        if isinstance(message, str):
            return [*texts, message]
        role = message.get("role") if isinstance(message, dict) else None
        if role in _SYSTEM or role == "user":
            texts += _texts(message.get("content"))
        if role == "user":
            break
    return texts


def _elements(text: str) -> Iterator[Any]:
    """The elements of a JSON list, or the one value that `text` is, decoded one by one.

    A conversation grows without end, and its beginning is all that is wanted.
    """
    if not text.startswith("["):
        yield _scan(text, 0)[0]
        return
    position = _next(text, 1)
    while text[position] != "]":
        value, end = _scan(text, position)
        yield value
        position = _next(text, end)


def _next(text: str, position: int) -> int:
    gap = _GAP.match(text, position)
    return gap.end() if gap else position


def _texts(content: Any) -> list[str]:
    """The text of a message's content; what is not text stands as its JSON."""
    if isinstance(content, str):
        return [content]
    if not isinstance(content, list):
        return []
    texts = [_block_text(block) for block in content]
    return [text for text in texts if text and not text.startswith(_BILLING)]


def _block_text(block: Any) -> str:
    if not isinstance(block, dict):
        return block if isinstance(block, str) else ""
    text = block.get("text")
    if isinstance(text, str):
        return text
    kept = {name: value for name, value in block.items() if name != "cache_control"}
    return msgspec.json.encode(kept, order="sorted").decode()
