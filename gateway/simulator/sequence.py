"""One request as the scheduler sees it."""

from __future__ import annotations

from array import array
from enum import Enum, auto

from gateway.simulator.prefix_cache import BlockTable


class State(Enum):
    WAITING = auto()
    RUNNING = auto()
    FINISHED = auto()
    ABORTED = auto()


class Sequence:
    """A prompt and what has been generated from it.

    Args:
        prompt: token ids, at least one.
        max_tokens: tokens after which it is cut (`length`), at least 1.
        answer_tokens: tokens after which the model would end by itself (`stop`).
        salt: `cache_salt`: only sequences with the same one share blocks.

    Attributes:
        tokens: the prompt, then the generated tokens.
        computed: leading tokens whose KV entries are computed or being computed.
        cached: prompt tokens found in the prefix cache at the first admission, None before it.
        preemptions: how often it lost its blocks.
    """

    __slots__ = (
        "answer_tokens",
        "cached",
        "computed",
        "max_tokens",
        "preemptions",
        "prompt_tokens",
        "salt",
        "state",
        "table",
        "tokens",
    )

    def __init__(
        self,
        prompt: array[int],
        max_tokens: int,
        answer_tokens: int | None = None,
        salt: str = "",
    ) -> None:
        if not prompt or max_tokens < 1:
            raise ValueError("a sequence needs a prompt and at least one token to generate")
        self.tokens = array("I", prompt)
        self.prompt_tokens = len(prompt)
        self.max_tokens = max_tokens
        self.answer_tokens = answer_tokens
        self.salt = salt
        self.table = BlockTable()
        self.computed = 0
        self.cached: int | None = None
        self.preemptions = 0
        self.state = State.WAITING

    @property
    def generated(self) -> int:
        return len(self.tokens) - self.prompt_tokens

    @property
    def finish_reason(self) -> str | None:
        """`stop`, `length` or `abort`; None while there is more to generate."""
        if self.state is State.ABORTED:
            return "abort"
        if self.answer_tokens is not None and self.generated >= self.answer_tokens:
            return "stop"
        return "length" if self.generated >= self.max_tokens else None
