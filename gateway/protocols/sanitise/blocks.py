"""The messages of a Messages request, each repaired by itself, so the same in every turn."""

from __future__ import annotations

from typing import Literal

import msgspec

from gateway.protocols.fields import Fields
from gateway.protocols.sanitise.parts import (
    decoded,
    elements,
    encoded,
    is_null,
    members,
    same,
    word,
)
from gateway.protocols.translate.messages_blocks import Block
from gateway.protocols.translate.messages_content import GAP, arguments, part, told

FAILED = "Error: "
"""How a result begins whose tool failed: vLLM drops `is_error` without a word."""

_SYSTEM = frozenset({"system", "developer"})
# What vLLM takes in a message, and what it reads of a tool's result.
_TAKEN = frozenset(
    {"text", "image", "tool_use", "tool_result", "tool_reference", "thinking", "redacted_thinking"}
)
_READ = frozenset({"text", "image", "tool_reference"})


class _Object(msgspec.Struct, gc=False):
    """Any JSON object; its members are skipped."""


class _Text(msgspec.Struct, gc=False, tag="text"): ...


class _Image(msgspec.Struct, gc=False, tag="image"): ...


class _Reference(msgspec.Struct, gc=False, tag="tool_reference"): ...


class _Thinking(msgspec.Struct, gc=False, tag="thinking"): ...


class _Redacted(msgspec.Struct, gc=False, tag="redacted_thinking"): ...


class _ToolUse(msgspec.Struct, gc=False, tag="tool_use"):
    input: _Object | None = None


class _ToolResult(msgspec.Struct, gc=False, tag="tool_result"):
    """The longest block: a plain text is not copied to be looked at."""

    content: msgspec.Raw = msgspec.Raw(b"null")
    is_error: bool | None = None


_Sound = _Text | _Image | _Reference | _Thinking | _Redacted | _ToolUse | _ToolResult


class _Message(msgspec.Struct, gc=False):
    """A message that vLLM takes, and reads whole but for results of tools."""

    role: Literal["user", "assistant"]
    content: str | list[_Sound]


_block = msgspec.json.Decoder(Block).decode
_sound = msgspec.json.Decoder(_Message).decode
_sound_parts = msgspec.json.Decoder(list[_Text | _Image | _Reference]).decode


def is_system(raw: msgspec.Raw) -> bool:
    """Whether a message gives instructions instead of taking a turn."""
    return word((members(raw) or {}).get("role")) in _SYSTEM


def message(raw: msgspec.Raw) -> msgspec.Raw | None:
    """A message as vLLM takes it, or None where nothing of it is left.

    Instructions among the turns become the user's words in their place: vLLM would move them to
    the beginning of the prompt, and every cached token behind it would be lost.
    """
    if _is_sound(raw):
        return raw
    fields = members(raw)
    if fields is None:
        return raw
    instructs = word(fields.get("role")) in _SYSTEM
    changes: Fields = {"role": encoded("user")} if instructs else {}
    content = fields.get("content")
    given = elements(content)
    if is_null(content):
        changes["content"] = encoded("")
    elif given is not None:
        new = system(given) if instructs else [block(one) for one in given]
        if given and not new:
            return None
        if not same(new, given):
            changes["content"] = encoded(new)
    elif instructs and told(word(content)) != word(content):
        return encoded({**fields, **changes, "content": told(word(content))})
    return encoded({**fields, **changes}) if changes else raw


def system(given: list[msgspec.Raw]) -> list[msgspec.Raw]:
    """The blocks of instructions, without the billing line."""
    return [block(kept) for one in given if (kept := _unbilled(one)) is not None]


def block(raw: msgspec.Raw) -> msgspec.Raw:
    """A message's block as one that vLLM takes: itself, if it does."""
    fields = members(raw) or {}
    kind = word(fields.get("type"))
    if kind == "tool_use":
        return _tool_use(raw, fields)
    if kind == "tool_result":
        return _tool_result(raw, fields)
    # What has no type is for the backend to judge.
    return _said(raw, kind) if kind and kind not in _TAKEN else raw


def text(value: str) -> msgspec.Raw:
    """A text block."""
    return encoded({"type": "text", "text": value})


def instructions(raw: msgspec.Raw) -> str:
    """The text of a message that gives instructions."""
    content = (members(raw) or {}).get("content")
    given = elements(content)
    if given is None:
        return told(word(content))
    texts = (told(word((members(one) or {}).get("text"))) for one in given)
    return GAP.join(filter(None, texts))


def _is_sound(raw: msgspec.Raw) -> bool:
    """Whether vLLM takes a message and reads all of it."""
    try:
        content = _sound(raw).content
        if type(content) is list:
            for one in content:
                if type(one) is _ToolResult:
                    if one.is_error:
                        return False
                    if bytes(memoryview(one.content)[:1]) == b"[":
                        _sound_parts(one.content)
    except (msgspec.DecodeError, RecursionError):
        return False
    return True


def _unbilled(raw: msgspec.Raw) -> msgspec.Raw | None:
    """A block without the billing line; None where it was no more than that."""
    fields = members(raw) or {}
    given = word(fields.get("text"))
    kept = told(given)
    if kept == given:
        return raw
    return encoded({**fields, "text": kept}) if kept else None


def _said(raw: msgspec.Raw, kind: str) -> msgspec.Raw:
    """A block that no open model's server takes, as text that says what can be read of it."""
    try:
        said = part(_block(raw))
    except (msgspec.DecodeError, ValueError, RecursionError):
        said = f"[{kind} left out: it cannot be read here]"
    return text(said if isinstance(said, str) else f"[{kind}]")


def _tool_use(raw: msgspec.Raw, fields: Fields) -> msgspec.Raw:
    given = fields.get("input")
    if given is None or is_null(given) or members(given) is not None:
        return raw
    return encoded({**fields, "input": msgspec.Raw(arguments(given).encode())})


def _tool_result(raw: msgspec.Raw, fields: Fields) -> msgspec.Raw:
    failed = decoded(fields.get("is_error")) is True
    content = fields.get("content")
    given = elements(content)
    changes: Fields = {}
    if given is not None:
        parts = [_part(one) for one in given]
        if failed:
            changes["content"] = encoded(_failed(parts))
        elif not same(parts, given):
            changes["content"] = encoded(parts)
    elif failed:
        changes["content"] = encoded(FAILED + (word(content) or "the tool failed"))
    if not changes:
        return raw
    kept = {name: value for name, value in fields.items() if not (failed and name == "is_error")}
    return encoded({**kept, **changes})


def _part(raw: msgspec.Raw) -> msgspec.Raw:
    """A part of a tool's result as one that vLLM reads."""
    kind = word((members(raw) or {}).get("type"))
    return _said(raw, kind) if kind and kind not in _READ else raw


def _failed(parts: list[msgspec.Raw]) -> list[msgspec.Raw]:
    first = (members(parts[0]) or {}) if parts else {}
    if word(first.get("type")) == "text":
        return [encoded({**first, "text": encoded(FAILED + word(first.get("text")))}), *parts[1:]]
    return [text(FAILED + "the tool failed"), *parts]
