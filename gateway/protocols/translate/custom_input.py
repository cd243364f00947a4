"""The free text of a custom tool's call, out of the JSON arguments of the function it became."""

from __future__ import annotations

import json
import re
from typing import Any

import msgspec

# Bounded, so that whatever has not begun like this within so many characters never will.
_OPENING = re.compile(r'\s{0,9}\{\s{0,9}"input"\s{0,9}:\s{0,9}"')
_LONGEST_OPENING = 4 * 9 + len('{"input":"')

# Text up to the closing quote or an escape that is not complete. An escape that JSON does not
# know stands for itself.
_TEXT = re.compile(r'(?:[^"\\]++|\\(?:[^u]|u(?:[0-9a-fA-F]{4}|(?=.{4}))))*+', re.DOTALL)
_HALF_PAIR = re.compile(r"\\u[dD][89abAB][0-9a-fA-F]{2}")
_HALF = len(r"\ud83d")
_ESCAPE = re.compile(r'\\(?:(["\\/bfnrt])|u([0-9a-fA-F]{4}))')
_SHORT = {"b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t"}


class InputReader:
    """Un-escapes the string in `{"input": "…"}` as it arrives.

    Arguments of any other form are held to their end. A model that was taught the tool elsewhere
    may write its input bare, so what is no JSON is the input itself.
    """

    __slots__ = ("_begun", "_closed", "_held", "_size")

    def __init__(self) -> None:
        self._held: list[str] = []
        self._size = 0
        self._begun = False
        self._closed = False

    def feed(self, arguments: str) -> str:
        """The text that this piece of the arguments brings."""
        if self._closed:
            return ""
        self._held.append(arguments)
        if not self._begun:
            hopeless = self._size >= _LONGEST_OPENING
            self._size += len(arguments)
            if hopeless:
                return ""
            held = "".join(self._held)
            opening = _OPENING.match(held)
            if opening is None:
                return ""
            self._begun = True
            self._held = [held[opening.end() :]]
        return self._text("".join(self._held))

    def close(self) -> str:
        """The text that only the end of the arguments tells."""
        if self._begun or self._closed:
            return ""
        self._closed = True
        return _of_other("".join(self._held))

    def _text(self, held: str) -> str:
        if "\\" not in held and '"' not in held:
            self._held.clear()
            return held
        match = _TEXT.match(held)
        assert match is not None
        end = match.end()
        if held.startswith('"', end):
            self._closed = True
        elif _ends_in_half_pair(held, end):
            end -= _HALF  # the other half may be on its way
        self._held = [held[end:]] if end < len(held) else []
        return _unescaped(held[:end])


def custom_input(arguments: str) -> str:
    """The text in a call's complete arguments."""
    reader = InputReader()
    return reader.feed(arguments) + reader.close()


def _ends_in_half_pair(text: str, end: int) -> bool:
    """Whether the text up to `end` ends in the escape of a high surrogate."""
    start = end - _HALF
    if start < 0 or _HALF_PAIR.match(text, start, end) is None:
        return False
    before = text[:start]
    return (len(before) - len(before.rstrip("\\"))) % 2 == 0  # else its backslash is escaped


def _unescaped(text: str) -> str:
    if "\\" not in text:
        return text
    try:
        plain: str = json.loads(f'"{text}"', strict=False)
    except ValueError:
        plain = _ESCAPE.sub(_character, text)
    if "\\u" not in text:
        return plain
    # Escaped surrogates come as pairs; one alone is no character.
    return plain.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def _character(escape: re.Match[str]) -> str:
    short, code = escape.groups()
    return chr(int(code, 16)) if code else _SHORT.get(short, short)


def _of_other(arguments: str) -> str:
    try:
        value: Any = msgspec.json.decode(arguments)
    except (msgspec.DecodeError, RecursionError):
        return arguments
    if isinstance(value, str):
        return value
    if not isinstance(value, dict):
        return arguments
    texts = [text for text in value.values() if isinstance(text, str)]
    text = value.get("input", texts[0] if len(texts) == len(value) == 1 else None)
    return text if isinstance(text, str) else arguments if value else ""
