"""Content of Responses items as chat content: text as one string, images and audio as parts."""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Sequence
from typing import Any

import msgspec

from gateway.protocols.translate.bad_fields import fault

_NULL = msgspec.Raw(b"null")
_TEXTS = frozenset({"input_text", "output_text", "text", "summary_text", "reasoning_text"})
_DETAILS = {"auto": "auto", "low": "low", "high": "high", "original": "high"}
_DATA_URL = re.compile(r"data:([^;,]*)[^,]*;base64,", re.IGNORECASE)
_READABLE = re.compile(r"text/.*|application/(?:json|xml|yaml|x-yaml|toml|javascript|.*\+json)")


ABSENT = msgspec.Raw()
"""A field of any type that is not there; `Raw` cannot be in a union with None."""


def given(value: msgspec.Raw) -> msgspec.Raw | None:
    """A field's JSON, None where it is absent or null."""
    return value if value and value != _NULL else None


class Part(msgspec.Struct, gc=False):
    """One element of an item's `content`, `summary` or `output`."""

    type: str = ""
    text: str | None = None
    refusal: str | None = None
    image_url: str | None = None
    detail: str | None = None
    file_id: str | None = None
    file_data: str | None = None
    file_url: str | None = None
    filename: str | None = None
    input_audio: msgspec.Raw = ABSENT
    stdout: str | None = None
    stderr: str | None = None


Content = str | list[Part] | None


class Read(msgspec.Struct, gc=False):
    """What content says.

    Attributes:
        texts: its texts, in order.
        parts: all of it as chat parts, in order, if it holds more than text.
    """

    texts: list[str]
    parts: Sequence[dict[str, Any]] = ()

    @property
    def media(self) -> list[dict[str, Any]]:
        """The parts that are no text."""
        return [part for part in self.parts if part["type"] != "text"]

    def content(self, joint: str = "\n") -> str | list[dict[str, Any]]:
        """As chat content: a string wherever there is only text, which every template takes."""
        return list(self.parts) or joint.join(self.texts)


def read(content: Content, path: str) -> Read:
    """Read an item's content.

    Raises:
        BadRequest: a part holds what chat has no form for; the path says which.
    """
    if content is None or isinstance(content, str):
        return Read([content] if content else [])
    texts = [part.text for part in content if part.text is not None and part.type in _TEXTS]
    return Read(texts) if len(texts) == len(content) else _mixed(content, path)


def _mixed(content: list[Part], path: str) -> Read:
    """Content of which not all is plain text."""
    texts: list[str] = []
    parts: list[dict[str, Any]] = []
    only_text = True
    for index, part in enumerate(content):
        where = f"{path}[{index}]"
        text = _text(part, where)
        if text is None:
            only_text = False
            parts.append(_media(part, where))
        else:
            texts.append(text)
            parts.append({"type": "text", "text": text})
    return Read(texts, () if only_text else parts)


def _text(part: Part, path: str) -> str | None:
    """The text of a part, None where it is something else."""
    if part.type in _TEXTS:
        if part.text is None:
            raise fault(f"{path}.text", "has to be a string")
        return part.text
    if part.type == "refusal":
        return part.refusal or ""
    if part.type == "input_file":
        return _file(part, path)
    if part.stdout is not None or part.stderr is not None:
        return f"{part.stdout or ''}{part.stderr or ''}"
    return None


def _media(part: Part, path: str) -> dict[str, Any]:
    if part.type in ("input_image", "computer_screenshot"):
        if not part.image_url:
            raise fault(
                f"{path}.image_url",
                "has to be a URL or a data URL; ids of files are not known here",
            )
        image = {"url": part.image_url}
        if part.detail in _DETAILS:
            image["detail"] = _DETAILS[part.detail]
        return {"type": "image_url", "image_url": image}
    if part.type == "input_audio" and given(part.input_audio) is not None:
        return {"type": "input_audio", "input_audio": part.input_audio}
    raise fault(
        f"{path}.type",
        f"is `{part.type[:50]}`, which this model's server cannot take; send text or images",
    )


def _file(part: Part, path: str) -> str:
    """A text file as text; chat completions have no form for others that every engine knows."""
    if part.file_data is None:
        raise fault(path, "refers to a file that is not here; send its text as `input_text`")
    url = _DATA_URL.match(part.file_data)
    encoded = part.file_data[url.end() :] if url else part.file_data
    if url and url[1] and not _READABLE.fullmatch(url[1].lower()):
        raise fault(path, f"is a file of type {url[1][:50]}; send its text as `input_text`")
    try:
        text = base64.b64decode(encoded, validate=True).decode()
    except (binascii.Error, ValueError):
        raise fault(path, "is no text file in base64; send its text as `input_text`") from None
    return f"{part.filename}:\n{text}" if part.filename else text
