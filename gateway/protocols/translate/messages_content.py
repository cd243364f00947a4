"""What the blocks of a Messages conversation are as chat text and chat parts."""

from __future__ import annotations

from typing import Any

import msgspec

from gateway.protocols.fields import parse
from gateway.protocols.sanitise.blocks import BILLING, FAILED
from gateway.protocols.sanitise.explain import explained
from gateway.protocols.sanitise.parts import arguments as as_object
from gateway.protocols.sanitise.parts import decoded
from gateway.protocols.translate.messages_blocks import (
    Block,
    Compaction,
    Content,
    File,
    Image,
    Text,
    ToolReference,
    ToolResult,
    Url,
)

GAP = "\n\n"
"""Between texts that were blocks of their own."""

Part = str | dict[str, Any]
"""A text, or a chat content part of another kind."""

_readable = msgspec.json.Decoder(Text | Image).decode


def system_texts(content: Content) -> list[str]:
    """The texts of a system prompt or of a system message, in order."""
    if content is None:
        return []
    found = [content] if isinstance(content, str) else [_text(parts(block)) for block in content]
    return [text for text in map(_told, found) if text]


def parts(block: Block) -> list[Part]:
    """A block of a user's message, or of a tool's result.

    What chat cannot carry is text that says so: refusing it would end a conversation that repeats
    it with every turn, and dropping it would leave the model guessing.
    """
    if isinstance(block, Text):
        return [block.text] if block.text else []
    if isinstance(block, Image):
        return [_image(block)]
    if isinstance(block, Compaction):
        return [block.content] if block.content else []
    if isinstance(block, ToolReference):
        return [f"[tool_reference: {block.tool_name}]"]
    kind = str(block.__struct_config__.tag)
    said = explained(kind, parse(msgspec.json.encode(block)))
    return [part for raw in said for part in parts(_readable(raw))]


def result(block: ToolResult) -> tuple[str, list[Part]]:
    """The text of a tool's result, and the images to show after it, which the text announces."""
    images: list[Part] = []
    if block.content is None or isinstance(block.content, str):
        text = block.content or ""
    else:
        found = [part for one in block.content for part in parts(one)]
        images = [part for part in found if not isinstance(part, str)]
        text = _text(found)
    return (FAILED + (text or "the tool failed") if block.is_error else text), images


def arguments(raw: msgspec.Raw | msgspec.UnsetType) -> str:
    """The input of a replayed call as the JSON object that chat templates rely on."""
    if raw is msgspec.UNSET:
        return "{}"
    text = bytes(raw).decode()
    return text if text.startswith("{") else bytes(as_object(decoded(raw))).decode()


def _told(text: str) -> str:
    """Text of the system, without Claude Code's billing line.

    The line differs from request to request, so no prompt that has it is found in a cache.
    """
    return text.partition("\n")[2].lstrip("\n") if text.startswith(BILLING) else text


def _text(found: list[Part]) -> str:
    return GAP.join(part if isinstance(part, str) else "[image]" for part in found)


def _image(block: Image) -> Part:
    source = block.source
    if isinstance(source, File):
        return f"[image {source.file_id} left out: it was uploaded elsewhere]"
    if isinstance(source, Url):
        url = source.url
    else:
        url = f"data:{source.media_type};base64,{source.data}"
    return {"type": "image_url", "image_url": {"url": url}}
