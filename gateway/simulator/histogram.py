"""A histogram that costs little for each token, in Prometheus' form when it is asked."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence


class Histogram:
    """Counts of observations up to each bound.

    Args:
        bounds: upper bounds in rising order; one without end is added.

    Attributes:
        total: the sum of what was observed.
    """

    def __init__(self, bounds: Sequence[float]) -> None:
        self._bounds = list(bounds)
        self._counts = [0] * (len(self._bounds) + 1)
        self.total = 0.0

    def observe(self, value: float, times: int = 1) -> None:
        self._counts[bisect_left(self._bounds, value)] += times
        self.total += value * times

    def cumulative(self) -> list[tuple[str, float]]:
        """Each bound as `le` says it, with how many observations are no larger."""
        found: list[tuple[str, float]] = []
        count = 0
        for bound, added in zip([*self._bounds, float("inf")], self._counts, strict=True):
            count += added
            found.append(("+Inf" if bound == float("inf") else repr(float(bound)), count))
        return found
