"""The text of a JSON object that arrives in pieces, as models write a tool's arguments.

Clients parse what has come after every piece. The official SDK raises at text that cannot be
the beginning of a JSON value, and the whole answer is lost for one broken call; at a beginning
that is never continued it does not.
"""

from __future__ import annotations

import re

_SPACE = " \t\n\r"
_MAX_DEPTH = 100
_MAX_NUMBER = 300
# Text of a string with its whole escapes, but for those of surrogates. Code in arguments is full of
# escapes, and one by one a megabyte of them would hold up every other stream for a second.
_PLAIN = re.compile(
    r'(?:[^"\\\x00-\x1f]++'
    r'|\\(?:["\\/bfnrt]|u(?:[0-9a-ce-fA-CE-F][0-9a-fA-F]|[dD][0-7])[0-9a-fA-F]{2}))*+'
)
_WORD = re.compile(r"[-+.0-9a-zA-Z]+")
_NUMBER = re.compile(r"-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?", re.ASCII)
_NUMBER_BEGUN = re.compile(
    r"-?(?:(?:0|[1-9]\d*)(?:\.(?:\d+(?:[eE](?:[+-]?\d*)?)?)?|[eE](?:[+-]?\d*)?)?)?", re.ASCII
)
_LITERALS = ("true", "false", "null")
_HIGH = re.compile(r"[dD][89abAB]")
_LOW = re.compile(r"[dD][c-fC-F]")
_HEX = frozenset("0123456789abcdefABCDEF")


class ObjectText:
    """Lets the text of one object pass for as long as it is one.

    Attributes:
        begun: whether its opening brace has come.
        complete: whether its closing brace has come.
        broken: whether something came that cannot stand in it.
    """

    __slots__ = (
        "_escape",
        "_high",
        "_in_string",
        "_is_key",
        "_open",
        "_want",
        "_word",
        "begun",
        "broken",
        "complete",
    )

    def __init__(self) -> None:
        self.begun = self.complete = self.broken = False
        self._open: list[str] = []
        self._want = "value"
        self._in_string = self._is_key = self._high = False
        self._escape = self._word = ""

    def feed(self, text: str) -> str:
        """As much of `text` as goes on with the object; nothing once something did not."""
        if self.broken:
            return ""
        if not self.begun:
            text = text.lstrip(_SPACE)
            if text and text[0] != "{":
                self.broken = True
                return ""
        position, size = 0, len(text)
        while position < size:
            step = self._string if self._in_string else self._structure
            after = step(text, position)
            if after < 0:
                self.broken = True
                return text[:position]
            position = after
        return text

    def _string(self, text: str, position: int) -> int:
        """Read on within a string; return where to go on, or -1 where it cannot be."""
        if self._escape:
            return self._escaped(text[position], position)
        if self._high:
            self._escape = "\\"
            return position + 1 if text[position] == "\\" else -1
        end = _PLAIN.match(text, position).end()  # type: ignore[union-attr]  # it matches the empty text, too
        if end > position:
            return end
        if text[end] == "\\":
            self._escape = "\\"
        elif text[end] == '"':
            self._in_string = False
            self._want = "colon" if self._is_key else "more"
        else:
            return -1
        return end + 1

    def _escaped(self, char: str, position: int) -> int:
        if self._escape == "\\":
            if char == "u":
                self._escape = "u"
                return position + 1
            if self._high or char not in '"\\/bfnrt':
                return -1
            self._escape = ""
            return position + 1
        if char not in _HEX:
            return -1
        digits = self._escape[1:] + char
        # Half of a surrogate pair alone is no character.
        if len(digits) == 2 and bool(_LOW.match(digits)) != self._high:
            return -1
        self._escape += char
        if len(digits) == 4:
            self._escape = ""
            self._high = bool(_HIGH.match(digits))
        return position + 1

    def _structure(self, text: str, position: int) -> int:
        """Read on outside of strings; as `_string`."""
        if self._word:
            return self._on_with_word(text, position)
        char = text[position]
        if char in _SPACE:
            return position + 1
        want = self._want
        if want in ("value", "first value") and (char in "-tfn" or char in "0123456789"):
            return self._on_with_word(text, position)
        return position + 1 if self._mark(char, want) else -1

    def _on_with_word(self, text: str, position: int) -> int:
        """Numbers and literals, which end where something else begins."""
        found = _WORD.match(text, position)
        if found is None:
            complete = self._word in _LITERALS or _NUMBER.fullmatch(self._word)
            self._word, self._want = "", "more"
            return position if complete else -1
        word = self._word + found[0]
        begun = any(literal.startswith(word) for literal in _LITERALS)
        if not begun and (len(word) > _MAX_NUMBER or not _NUMBER_BEGUN.fullmatch(word)):
            return -1
        self._word = word
        return found.end()

    def _mark(self, char: str, want: str) -> bool:
        """Take one of JSON's marks; False where it cannot stand."""
        if char in "{[":
            return want in ("value", "first value") and self._enter(char)
        if char in "}]":
            first = "first key" if char == "}" else "first value"
            return want in ("more", first) and self._leave("{" if char == "}" else "[")
        if char == '"' and want not in ("more", "colon", "nothing"):
            self._in_string = True
            self._is_key = want in ("key", "first key")
        elif char == ":" and want == "colon":
            self._want = "value"
        elif char == "," and want == "more":
            self._want = "key" if self._open[-1] == "{" else "value"
        else:
            return False
        return True

    def _enter(self, bracket: str) -> bool:
        self.begun = True
        self._open.append(bracket)
        self._want = "first key" if bracket == "{" else "first value"
        return len(self._open) <= _MAX_DEPTH

    def _leave(self, bracket: str) -> bool:
        if self._open.pop() != bracket:
            return False
        self.complete = not self._open
        self._want = "nothing" if self.complete else "more"
        return True
