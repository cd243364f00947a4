"""The messages of a Messages request, each repaired by itself, so the same in every turn."""

from __future__ import annotations

from typing import Literal

import msgspec

from gateway.protocols.fields import Fields
from gateway.protocols.sanitise.explain import explained, text
from gateway.protocols.sanitise.parts import (
    arguments,
    decoded,
    elements,
    encoded,
    is_null,
    members,
    same,
    word,
)

BILLING = "x-anthropic-billing-header"
"""How Claude Code's line begins that is another one with every request."""

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


_Block = _Text | _Image | _Reference | _Thinking | _Redacted | _ToolUse | _ToolResult


class _Message(msgspec.Struct, gc=False):
    """A message that vLLM takes, and reads whole but for results of tools."""

    role: Literal["user", "assistant"]
    content: str | list[_Block]


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
        kept = [one for one in given if not (instructs and _is_billing(one))]
        if given and not kept:
            return None
        new = [part for one in kept for part in block(one)]
        if not same(new, given):
            changes["content"] = encoded(new)
    return encoded({**fields, **changes}) if changes else raw


def system(given: list[msgspec.Raw]) -> list[msgspec.Raw]:
    """The blocks of the system text, without the billing line."""
    return [part for one in given if not _is_billing(one) for part in block(one)]


def block(raw: msgspec.Raw) -> list[msgspec.Raw]:
    """A message's block in blocks that vLLM takes: itself, if it does."""
    fields = members(raw) or {}
    kind = word(fields.get("type"))
    if kind == "tool_use":
        return [_tool_use(raw, fields)]
    if kind == "tool_result":
        return [_tool_result(raw, fields)]
    # What has no type is for the backend to judge.
    return explained(kind, fields) if kind and kind not in _TAKEN else [raw]


def instructions(raw: msgspec.Raw) -> str:
    """The text of a message that gives instructions."""
    content = (members(raw) or {}).get("content")
    given = elements(content)
    if given is None:
        return word(content)
    texts = (word((members(one) or {}).get("text")) for one in given if not _is_billing(one))
    return "".join(texts)


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


def _is_billing(raw: msgspec.Raw) -> bool:
    return word((members(raw) or {}).get("text")).startswith(BILLING)


def _tool_use(raw: msgspec.Raw, fields: Fields) -> msgspec.Raw:
    given = fields.get("input")
    if is_null(given) or members(given) is not None:
        return raw
    return encoded({**fields, "input": arguments(decoded(given))})


def _tool_result(raw: msgspec.Raw, fields: Fields) -> msgspec.Raw:
    failed = decoded(fields.get("is_error")) is True
    content = fields.get("content")
    given = elements(content)
    changes: Fields = {}
    if given is not None:
        parts = [one for part in given for one in _part(part)]
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


def _part(raw: msgspec.Raw) -> list[msgspec.Raw]:
    """A part of a tool's result in parts that vLLM reads."""
    fields = members(raw) or {}
    kind = word(fields.get("type"))
    return explained(kind, fields) if kind and kind not in _READ else [raw]


def _failed(parts: list[msgspec.Raw]) -> list[msgspec.Raw]:
    first = (members(parts[0]) or {}) if parts else {}
    if word(first.get("type")) == "text":
        return [encoded({**first, "text": encoded(FAILED + word(first.get("text")))}), *parts[1:]]
    return [text(FAILED + "the tool failed"), *parts]
