"""Percentiles and spreads.

A percentile here lies at (n - 1) p / 100 of the n ordered values, from 0, linearly interpolated
between the two neighbours of that place: numpy's default, method `linear` (type 7 of Hyndman and
Fan). `vllm bench serve` takes its figures by it, so those of one name can be compared. The other
usual definition, the nearest rank, gives a value that did occur; the two differ by less than the
gap between those neighbours, which is wide only where values are few.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from statistics import fmean, median, pstdev

from gateway.bench.results import Spread

PERCENTS = (50, 90, 95, 99)


def percentile(ordered: Sequence[float], percent: float) -> float:
    """The value below which `percent` of all lie.

    Args:
        ordered: from small to large, not empty.
        percent: from 0 to 100.
    """
    place = (len(ordered) - 1) * percent / 100
    below = math.floor(place)
    low, high = ordered[below], ordered[min(below + 1, len(ordered) - 1)]
    # In this form, equal neighbours give exactly their value, and the result is between them.
    return low + (high - low) * (place - below)


def described(name: str, values: Iterable[float]) -> dict[str, float | None]:
    """Mean, median, standard deviation and percentiles as `mean_NAME_ms`, …; null of nothing."""
    ordered = sorted(values)
    found: dict[str, float | None] = {
        f"mean_{name}_ms": round(fmean(ordered), 3) if ordered else None,
        f"median_{name}_ms": round(median(ordered), 3) if ordered else None,
        f"std_{name}_ms": round(pstdev(ordered), 3) if ordered else None,
    }
    for percent in PERCENTS:
        value = round(percentile(ordered, percent), 3) if ordered else None
        found[f"p{percent}_{name}_ms"] = value
    return found


def spread(values: Sequence[float | None]) -> Spread | None:
    """Of one value a round; None where no round has one."""
    known = [value for value in values if value is not None]
    if not known:
        return None
    return Spread(median=median(known), low=min(known), high=max(known), values=tuple(values))
