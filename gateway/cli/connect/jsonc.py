"""JSON files as people keep them, with comments and commas at the end: read, and changed in place.

What is not changed stays as it stands, byte for byte. Comments are blanked to find the values, so
that the standard library reads both kinds of file, and says where in the file a fault is. Pure.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

_STRING = r'"(?:[^"\\\n]|\\.)*"'
_COMMENT = re.compile(rf"{_STRING}|//[^\n]*|/\*.*?\*/", re.DOTALL)
_LAST_COMMA = re.compile(rf"{_STRING}|,(?=\s*[}}\]])")
_BLANKED = re.compile(r"[^\r\n]")
_SPACE = re.compile(r"[ \t\r\n]*")
_value_at = json.JSONDecoder().raw_decode


class _Edit(NamedTuple):
    start: int
    stop: int
    text: str


class _Member(NamedTuple):
    """A name and its value: where the name starts, and the value starts and stops."""

    at: int
    start: int
    stop: int


def read(text: str) -> Any:
    """The value a file holds.

    Raises:
        json.JSONDecodeError: with the place in `text`.
        RecursionError: it is nested too deeply.
    """
    return json.loads(_without_last_commas(_without_comments(text)))


def updated(text: str, content: Mapping[str, Any]) -> str:
    """The text changed so that `read` gives `content`, an object as before.

    Raises:
        ValueError: it cannot be: a name stands in an object twice.
    """
    bare = _without_comments(text)
    source = _Source(text, bare, _without_last_commas(bare))
    out, done = [], 0
    for edit in sorted(source.edits(source.skip(0), content), key=lambda one: one.start):
        out += [text[done : edit.start], edit.text]
        done = edit.stop
    result = "".join([*out, text[done:]])
    if read(result) != content:
        raise ValueError("a name stands twice in one object")
    return result


def indent_of(text: str) -> int | str:
    """By what a file indents, as `json.dumps` takes it."""
    found = re.search(r"^([ \t]+)\S", text, re.MULTILINE)
    if found is None:
        return 2
    return "\t" if "\t" in found[1] else len(found[1])


def _without_comments(text: str) -> str:
    return _COMMENT.sub(lambda found: _blank(found[0]), text)


def _without_last_commas(bare: str) -> str:
    return _LAST_COMMA.sub(lambda found: _blank(found[0]), bare)


def _blank(found: str) -> str:
    return found if found.startswith('"') else _BLANKED.sub(" ", found)


class _Source:
    """A file's text, without comments, and without last commas; all of one length."""

    def __init__(self, text: str, bare: str, flat: str) -> None:
        self._text, self._bare, self._flat = text, bare, flat
        self._indent = indent_of(text)
        self._unit = self._indent if isinstance(self._indent, str) else " " * self._indent
        self._newline = "\r\n" if "\r\n" in text else "\n"

    def skip(self, at: int) -> int:
        """Past white space and comments."""
        found = _SPACE.match(self._flat, at)
        return found.end() if found else at

    def edits(self, at: int, new: Mapping[str, Any]) -> Iterator[_Edit]:
        """What turns the object at this place into another, in no order."""
        old, close = _value_at(self._flat, at)
        members = self._members(at)
        for name, member in members.items():
            if name not in new:
                continue
            value = new[name]
            if isinstance(value, Mapping) and isinstance(old[name], Mapping):
                yield from self.edits(member.start, value)
            elif value != old[name]:
                column = self._column(member.at)
                yield _Edit(member.start, member.stop, self._dumped(value, column))
        yield from self._come_and_go(at, close - 1, members, new)

    def _members(self, at: int) -> dict[str, _Member]:
        flat, found = self._flat, {}
        at = self.skip(at + 1)
        while flat[at] != "}":
            name, end = _value_at(flat, at)
            start = self.skip(self.skip(end) + 1)
            _, stop = _value_at(flat, start)
            found[name] = _Member(at, start, stop)
            at = self.skip(stop)
            if flat[at] == ",":
                at = self.skip(at + 1)
        return found

    def _come_and_go(
        self, at: int, close: int, members: Mapping[str, _Member], new: Mapping[str, Any]
    ) -> Iterator[_Edit]:
        kept = [member for name, member in members.items() if name in new]
        added = {name: value for name, value in new.items() if name not in members}
        gone = [member for name, member in members.items() if name not in new]
        yield from map(self._removal, gone)
        last = kept[-1].stop if kept else at + 1
        comma = self._comma(last) if kept else None
        if added:
            yield from self._insertion(at, close, last, comma, bool(kept), added)
        elif gone and comma is not None and gone[-1].at > last and not self._comma(gone[-1].stop):
            yield _Edit(comma, comma + 1, "")

    def _removal(self, member: _Member) -> _Edit:
        """A member with its comma, and its line where nothing else stands on it."""
        comma = self._comma(member.stop)
        stop = member.stop if comma is None else comma + 1
        start = self._text.rfind("\n", 0, member.at) + 1
        alone = re.compile(r"[ \t]*\r?\n").match(self._text, stop)
        if alone and not self._text[start : member.at].strip():
            return _Edit(start, alone.end(), "")
        return _Edit(member.at, stop, "")

    def _insertion(
        self,
        at: int,
        close: int,
        last: int,
        comma: int | None,
        follows: bool,
        added: Mapping[str, Any],
    ) -> Iterator[_Edit]:
        """New members, after the last one and the comments behind it."""
        inner = self._column(at) + self._unit
        lines = [f"{json.dumps(n)}: {self._dumped(v, inner)}" for n, v in added.items()]
        if follows and comma is None:
            yield _Edit(last, last, ",")
        place = len(self._text[:close].rstrip())
        if follows and "\n" not in self._text[at:close]:
            yield _Edit(place, place, " " + ", ".join(lines))
            return
        ends = "," if follows and comma is not None else ""
        new = "".join(
            f"{self._newline}{inner}{line}{',' if n < len(lines) else ends}"
            for n, line in enumerate(lines, 1)
        )
        tail = "" if "\n" in self._text[place:close] else f"{self._newline}{self._column(at)}"
        yield _Edit(place, place if "\n" in self._text[place:close] else close, new + tail)

    def _comma(self, stop: int) -> int | None:
        """Where the comma after a value is, be it the last one."""
        found = _SPACE.match(self._bare, stop)
        at = found.end() if found else stop
        return at if self._bare[at : at + 1] == "," else None

    def _column(self, at: int) -> str:
        """The white space the line of this place begins with."""
        line = self._text.rfind("\n", 0, at) + 1
        found = re.compile(r"[ \t]*").match(self._text, line)
        return found[0] if found else ""

    def _dumped(self, value: Any, column: str) -> str:
        text = json.dumps(value, indent=self._indent, ensure_ascii=False)
        return text.replace("\n", self._newline + column)
