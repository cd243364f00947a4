"""What the blocks of a Messages conversation are as chat text and chat parts.

A document that a chat server cannot read, or a file only Anthropic has, becomes a note in its
place: refusing it would end a conversation that repeats it with every turn, and dropping it
would leave the model guessing.
"""

from __future__ import annotations

import json
from typing import Any

import msgspec

from gateway.protocols.translate.messages_blocks import (
    Base64,
    Block,
    Blocks,
    Content,
    Document,
    File,
    Foreign,
    Image,
    Plain,
    SearchResult,
    Text,
    ToolResult,
    Url,
)

GAP = "\n\n"
"""Between texts that were blocks of their own."""

UNPARSED = "__unparsedToolInput"
"""Where Claude Code keeps a call's input that is no JSON object: `{UNPARSED: {"raw": text}}`."""

Part = str | dict[str, Any]
"""A text, or a chat content part of another kind."""

_BILLING = "x-anthropic-billing-header"


def told(text: str) -> str:
    """Text of the system, without Claude Code's billing line.

    The line differs from request to request, so no prompt that has it is found in a cache.
    """
    return text.partition("\n")[2].lstrip("\n") if text.startswith(_BILLING) else text


def system_texts(content: Content) -> list[str]:
    """The texts of a system prompt or of a system message, in order."""
    if content is None:
        return []
    blocks = [content] if isinstance(content, str) else map(_as_text, content)
    return [text for text in map(told, blocks) if text]


def part(block: Block) -> Part:
    """A block of a user's message."""
    if isinstance(block, Text):
        return block.text
    if isinstance(block, Image):
        return _image(block)
    return _as_text(block)


def result(block: ToolResult) -> tuple[str, list[Part]]:
    """The text of a tool's result, and the images to show after it, which the text announces."""
    images: list[Part] = []
    if block.content is None or isinstance(block.content, str):
        text = block.content or ""
    else:
        parts = list(map(part, block.content))
        images = [one for one in parts if not isinstance(one, str)]
        text = GAP.join(one if isinstance(one, str) else "[image]" for one in parts)
    return (f"Error: {text}" if block.is_error else text), images


def arguments(raw: msgspec.Raw | msgspec.UnsetType) -> str:
    """The input of a replayed call as the JSON object that chat templates rely on."""
    text = "" if raw is msgspec.UNSET else bytes(raw).decode()
    if text.startswith("{"):
        return text
    if text in ("", "null", '""'):
        return "{}"
    return as_object(msgspec.json.decode(text)) if text.startswith('"') else _unparsed(text)


def as_object(text: str) -> str:
    """Arguments as a model wrote them: as they are if they are a JSON object, else wrapped."""
    if not text.strip():
        return "{}"
    try:
        msgspec.json.decode(text, type=dict[str, msgspec.Raw])
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        return _unparsed(text)
    return text


def _unparsed(text: str) -> str:
    return msgspec.json.encode({UNPARSED: {"raw": text}}).decode()


def _image(block: Image) -> Part:
    source = block.source
    if isinstance(source, File):
        return _note("image", source.file_id, "it was uploaded elsewhere")
    if isinstance(source, Url):
        url = source.url
    else:
        url = f"data:{source.media_type};base64,{source.data}"
    return {"type": "image_url", "image_url": {"url": url}}


def _as_text(block: Block) -> str:
    """A block where only text can stand."""
    if isinstance(block, Text):
        return block.text
    if isinstance(block, Document):
        return _document(block)
    if isinstance(block, SearchResult):
        return "\n".join((f"{block.title} ({block.source})", *(one.text for one in block.content)))
    if isinstance(block, Image):
        return "[image]"
    return _foreign(block) if isinstance(block, Foreign) else ""


def _document(block: Document) -> str:
    source, title = block.source, block.title or ""
    if isinstance(source, Plain):
        text = source.data
    elif isinstance(source, Blocks):
        inside = source.content
        text = inside if isinstance(inside, str) else GAP.join(map(_as_text, inside))
    elif isinstance(source, Base64):
        return _note("document", title, f"{source.media_type} cannot be read here; send its text")
    elif isinstance(source, Url):
        return _note("document", title or source.url, "links are not followed here; send its text")
    else:
        return _note("document", title or source.file_id, "it was uploaded elsewhere")
    head = [line for line in (title, block.context) if line]
    return "\n".join(("<document>", *head, text, "</document>"))


def _note(kind: str, name: str, why: str) -> str:
    return f"[{kind} {name} left out: {why}]" if name else f"[{kind} left out: {why}]"


def _foreign(block: Foreign) -> str:
    kind = str(block.__struct_config__.tag)
    values = {name: getattr(block, name) for name in block.__struct_fields__}
    # The standard library's reader, since it bears integers beyond 64 bits.
    said = {
        name: _legible(json.loads(bytes(raw), parse_int=_number))
        for name, raw in values.items()
        if raw
    }
    return f"[{kind} {json.dumps(said, ensure_ascii=False)}]"


def _number(digits: str) -> int | str:
    """Python refuses to read an integer of thousands of digits."""
    return int(digits) if len(digits) < 1000 else digits


def _legible(value: Any) -> Any:
    """Without what is encrypted for Anthropic, which is long and says nothing."""
    if isinstance(value, dict):
        kept = {name: one for name, one in value.items() if not name.startswith("encrypted")}
        return {name: _legible(one) for name, one in kept.items()}
    return [_legible(one) for one in value] if isinstance(value, list) else value
