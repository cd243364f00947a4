"""What a page of the documentation tells its reader to run, in order.

A block of `bash` is run as it stands. A block of `console` has commands after `$ `, continued
after `> `, and below each what it shows. A block with `file=NAME` is written to that file. Blocks
of other kinds are for reading. A block after a paragraph that begins with `NOT_RUN` is left out,
for the reason that the paragraph gives.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from markdown_it import MarkdownIt

NOT_RUN = "Not run by the tests: "
ROOT = Path(__file__).parents[2]


@dataclass
class Step:
    """One thing to do.

    Attributes:
        line: where it stands in the page.
        section: the heading above it.
        file: the file that `text` is the content of; empty if `text` is a command.
        shown: what the page shows of the command's output; None if it shows nothing.
        varies: other figures may come.
        left_out: why the tests do not run it; empty if they do.
    """

    line: int
    section: str
    text: str
    file: str = ""
    shown: list[str] | None = None
    varies: bool = False
    left_out: str = ""


@dataclass
class _Block:
    line: int
    section: str
    kind: str
    text: str
    words: list[str] = field(default_factory=list)
    left_out: str = ""


def steps(page: Path) -> list[Step]:
    """The steps of a page, in order."""
    return [step for block in _blocks(page.read_text()) for step in _steps(block)]


def kinds(page: Path) -> set[str]:
    """The kinds of its blocks; an empty word for a block that names none."""
    return {block.kind for block in _blocks(page.read_text())}


def _blocks(text: str) -> Iterator[_Block]:
    before = section = ""
    heading = False
    for token in MarkdownIt().parse(text):
        if token.type == "heading_open":
            heading = True
        elif token.type == "inline":
            before = token.content
            section = before if heading else section
            heading = False
        elif token.type == "fence":
            assert token.map is not None
            kind, *words = token.info.split() or [""]
            reason = before.removeprefix(NOT_RUN) if before.startswith(NOT_RUN) else ""
            yield _Block(token.map[0] + 1, section, kind, token.content, words, reason)
            before = ""


def _steps(block: _Block) -> Iterator[Step]:
    files = [word.removeprefix("file=") for word in block.words if word.startswith("file=")]
    if files:
        yield Step(block.line, block.section, block.text, file=files[0], left_out=block.left_out)
    elif block.kind == "bash":
        yield Step(block.line, block.section, block.text, left_out=block.left_out)
    elif block.kind == "console":
        yield from _dialogue(block)


def _dialogue(block: _Block) -> Iterator[Step]:
    step: Step | None = None
    for number, line in enumerate(block.text.splitlines(), start=block.line + 1):
        if line.startswith("$ "):
            if step is not None:
                yield step
            varies = "varies" in block.words
            step = Step(number, block.section, line[2:], varies=varies, left_out=block.left_out)
        elif step is None:
            raise ValueError(f"line {number}: output before the first command")
        elif line.startswith("> ") and step.shown is None:
            step.text += "\n" + line[2:]
        else:
            step.shown = [*(step.shown or []), line]
    if step is not None:
        yield step
