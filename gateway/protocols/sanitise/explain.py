"""Blocks of a message that no open model's server takes, said as text.

Nothing is lost without a word: a text that can be read is inlined, and of the rest a note stays
in its place.
"""

from __future__ import annotations

import msgspec

from gateway.protocols.fields import Fields
from gateway.protocols.sanitise.parts import elements, encoded, is_null, members, word

_RESULT = "_tool_result"
_KEPT = frozenset({"text", "image"})


def text(value: str) -> msgspec.Raw:
    """A text block."""
    return encoded({"type": "text", "text": value})


def explained(kind: str, block: Fields) -> list[msgspec.Raw]:
    """A block of a type that the server does not take, as blocks of text (and images) it does."""
    if kind == "document":
        return _document(block)
    if kind == "search_result":
        inner = elements(block.get("content")) or []
        return _framed(kind, word(block.get("title")) or word(block.get("source")), inner)
    if kind == "server_tool_use":
        given = block.get("input")
        said = "" if is_null(given) or given is None else f" with {bytes(given).decode()}"
        return [text(f"[{word(block.get('name')) or 'a server tool'} was called{said}]")]
    if kind.endswith(_RESULT):
        return [text(_outcome(kind.removesuffix(_RESULT), block))]
    return [text(f"[{kind} left out: the model's server cannot read it]")]


def _document(block: Fields) -> list[msgspec.Raw]:
    source = members(block.get("source")) or {}
    kind, title = word(source.get("type")), word(block.get("title"))
    context = [text(word(block.get("context")))] if word(block.get("context")) else []
    content = source.get("content")
    if kind == "text":
        return _framed("document", title, [*context, text(word(source.get("data")))])
    if kind == "content" and (inner := elements(content)) is not None:
        return _framed("document", title, context + inner)
    if kind == "content" and word(content):
        return _framed("document", title, [*context, text(word(content))])
    what = " ".join(
        one
        for one in (
            f'"{title}"' if title else "",
            word(source.get("url")),
            f"({word(source.get('media_type'))})" if word(source.get("media_type")) else "",
        )
        if one
    )
    note = f"[document {what} left out: the model's server reads texts and images only]"
    return [*context, text(note.replace("  ", " "))]


def _framed(kind: str, title: str, inner: list[msgspec.Raw]) -> list[msgspec.Raw]:
    """What is readable of `inner`, between marks; one block where all of it is text."""
    head = f'<{kind} title="{title}">' if title else f"<{kind}>"
    blocks: list[msgspec.Raw] = []
    said = [head]
    for raw in inner:
        block = members(raw) or {}
        kind_within = word(block.get("type"))
        if kind_within == "image":
            blocks += [text("\n".join(said)), raw]
            said = []
        elif kind_within == "text":
            said.append(word(block.get("text")))
        else:
            said.append(f"[{kind_within or 'a part'} left out]")
    return [*blocks, text("\n".join([*said, f"</{kind}>"]))]


def _outcome(tool: str, block: Fields) -> str:
    """What a server tool found; sources are kept, since their text is sealed for others."""
    content = block.get("content")
    found = elements(content)
    if found is None:
        error = word((members(content) or {}).get("error_code"))
        return (
            f"[{tool} failed: {error}]" if error else f"[{tool} answered: its result is left out]"
        )
    lines = [f"[{tool} found {len(found)} results]"]
    for raw in found:
        one = members(raw) or {}
        said = word(one.get("text")) or f"{word(one.get('title'))} {word(one.get('url'))}".strip()
        lines.append(f"- {said}" if said else "- (left out)")
    return "\n".join(lines)
