"""Whether a command shows what its page says, figures and names of the day aside."""

from __future__ import annotations

import re
from collections.abc import Sequence

ANYTHING = "…"
"""A line of it stands for any number of lines; within a line, for any text."""

_MASKS = (
    (re.compile(r"sk-[\w-]+(…( \(\d+ characters\))?)?"), "KEY"),
    (re.compile(r"req_[0-9a-f]+"), "REQUEST"),
    (re.compile(r"\b[0-9a-f]{16}\b"), "HASH"),
    (re.compile(r"\d{4}-\d\d-\d\d[ T]\d\d:\d\d:\d\d"), "TIME"),
    (re.compile(r"\d[\d.,]* m?s\b"), "DURATION"),
    (re.compile(r"\S+ \((cli|console)\)"), r"WHO (\1)"),
)
_FIGURE = re.compile(r"\d[\d.,]*")


def alike(shown: Sequence[str], said: str, *, varies: bool) -> bool:
    """Whether the lines of a page match what was said.

    Args:
        varies: no figure has to be the same.
    """
    wanted = [_masked(line, varies) for line in shown]
    found = [_masked(line, varies) for line in said.splitlines()]
    return _match([line for line in wanted if line], [line for line in found if line])


def _masked(line: str, varies: bool) -> str:
    for pattern, word in _MASKS:
        line = pattern.sub(word, line)
    if varies:
        line = _FIGURE.sub("#", line)
    return " ".join(line.split())


def _match(wanted: Sequence[str], found: Sequence[str]) -> bool:
    if not wanted:
        return not found
    first, rest = wanted[0], wanted[1:]
    if first == ANYTHING:
        return any(_match(rest, found[n:]) for n in range(len(found) + 1))
    if not found:
        return False
    pattern = ".*".join(map(re.escape, first.split(ANYTHING)))
    return bool(re.fullmatch(pattern, found[0])) and _match(rest, found[1:])
