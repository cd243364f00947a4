"""What the model says in one turn, apart from the API that it is told in."""

from __future__ import annotations

from dataclasses import dataclass

PROMPT_TOKENS, CACHED_TOKENS, COMPLETION_TOKENS = 1200, 400, 12


@dataclass(frozen=True)
class Answer:
    """One turn of the model: thoughts, then some text, or a call of a tool of the client's.

    Attributes:
        call: the id is made from it, so it differs between the turns of a test.
        cut: the limit of its length ended it.
        filtered: a filter of contents ended it.
    """

    text: str = ""
    tool: str = ""
    arguments: str = "{}"
    call: str = "call_1"
    thinking: str = ""
    cut: bool = False
    filtered: bool = False

    @property
    def said(self) -> str:
        """What is generated besides thoughts."""
        return self.arguments if self.tool else self.text


def pieces(text: str) -> list[str]:
    """Something generated, in the pieces that it is streamed in; none of nothing."""
    words = text.split(" ")
    return [words[0], *(" " + word for word in words[1:])] if text else []
