"""How long a step takes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from gateway.simulator.scheduler import Step


class Work(NamedTuple):
    """What steps computed.

    Attributes:
        steps: how many computed anything.
        tokens: computed.
        pairs: of a computed and an attended token: Σ chunk · context, where `context` is the mean
            number of tokens that a token of the chunk attends to, so that the attention work of a
            prompt does not depend on how it is cut.
    """

    steps: int = 0
    tokens: int = 0
    pairs: float = 0.0

    @classmethod
    def of(cls, step: Step) -> Work:
        """One step's; nothing at all if it computes nothing."""
        tokens = 0
        pairs = 0.0
        for chunk in step.chunks:
            tokens += chunk.tokens
            pairs += chunk.tokens * (chunk.context + (chunk.tokens + 1) / 2)
        return cls(1 if step.chunks else 0, tokens, pairs)

    def plus(self, other: Work) -> Work:
        return Work(self.steps + other.steps, self.tokens + other.tokens, self.pairs + other.pairs)

    def less(self, other: Work) -> Work:
        return Work(self.steps - other.steps, self.tokens - other.tokens, self.pairs - other.pairs)


@dataclass(frozen=True, slots=True)
class StepLatency:
    """a + b · tokens + c · Σ chunk · context, in seconds.

    Attributes:
        base: a, seconds a step takes whatever is in it.
        per_token: b, seconds for each token computed.
        per_pair: c, seconds for each pair of a computed and an attended token.
    """

    base: float
    per_token: float
    per_pair: float

    def of(self, step: Step) -> float:
        """Seconds for `step`; nothing at all if it computes nothing."""
        return self.seconds(Work.of(step))

    def seconds(self, work: Work) -> float:
        """Seconds for all steps of `work`."""
        return self.base * work.steps + self.per_token * work.tokens + self.per_pair * work.pairs
