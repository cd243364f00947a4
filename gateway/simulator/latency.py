"""How long a step takes."""

from __future__ import annotations

from dataclasses import dataclass

from gateway.simulator.scheduler import Step


@dataclass(frozen=True, slots=True)
class StepLatency:
    """a + b · tokens + c · Σ chunk · context, in seconds.

    `context` is the mean number of tokens that a token of the chunk attends to, so that the
    attention work of a prompt does not depend on how it is cut.

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
        if not step.chunks:
            return 0.0
        tokens = 0
        pairs = 0.0
        for chunk in step.chunks:
            tokens += chunk.tokens
            pairs += chunk.tokens * (chunk.context + (chunk.tokens + 1) / 2)
        return self.base + self.per_token * tokens + self.per_pair * pairs
