"""Percentiles and shares from histogram buckets, as Prometheus computes them. Pure.

Buckets are given as their upper bounds in ascending order, infinity last, and as counts that are
cumulative (each holds all that is at most its bound) or separate, as the functions say.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

Counts = tuple[float, ...]


def added(before: Counts, after: Counts) -> Counts:
    """What came between two readings of the same buckets; `before` may be empty for nothing."""
    if not before:
        return after
    return tuple(new - old for old, new in zip(before, after, strict=True))


def together(one: Counts, other: Counts) -> Counts:
    """Two histograms with the same buckets as one; either may be empty."""
    if not one or not other:
        return one or other
    return tuple(a + b for a, b in zip(one, other, strict=True))


def total(cumulative: Counts) -> float:
    """How many observations there are."""
    return cumulative[-1] if cumulative else 0.0


def quantile(q: float, bounds: Sequence[float], cumulative: Counts) -> float | None:
    """The q-quantile, taken to lie within its bucket in proportion; None without observations.

    As `histogram_quantile` does, it gives the highest finite bound for what lies above it.
    """
    rank = q * total(cumulative)
    if not cumulative or total(cumulative) <= 0:
        return None
    index = next((n for n, count in enumerate(cumulative) if count >= rank and count > 0), -1)
    upper = bounds[index]
    if math.isinf(upper):
        return bounds[-2]
    lower = bounds[index - 1] if index else 0.0
    below = cumulative[index - 1] if index else 0.0
    inside = cumulative[index] - below
    return lower + (upper - lower) * (rank - below) / inside


def separate(cumulative: Counts) -> Counts:
    """The counts of each bucket on its own."""
    return tuple(count - (cumulative[n - 1] if n else 0.0) for n, count in enumerate(cumulative))


def occupied(histograms: Sequence[Counts]) -> range:
    """The buckets between the lowest and the highest that hold anything in any of them.

    Args:
        histograms: cumulative.
    """
    held = [n for one in histograms for n, count in enumerate(separate(one)) if count > 0]
    return range(min(held), max(held) + 1) if held else range(0)
