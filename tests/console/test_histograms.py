from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.console.histograms import (
    added,
    occupied,
    quantile,
    separate,
    together,
    total,
)

BOUNDS = (0.1, 0.2, 0.4, math.inf)


@pytest.mark.parametrize(
    ("counts", "q", "value"),
    [
        ((10.0, 10.0, 10.0, 10.0), 0.5, 0.05),  # from zero up to the first bound
        ((0.0, 10.0, 10.0, 10.0), 0.5, 0.15),
        ((0.0, 10.0, 20.0, 20.0), 0.9, 0.36),
        ((0.0, 10.0, 20.0, 20.0), 0.5, 0.2),
        ((0.0, 0.0, 0.0, 5.0), 0.5, 0.4),  # above the highest finite bound
        ((0.0, 0.0, 4.0, 4.0), 0.0, 0.2),
    ],
)
def test_a_quantile_lies_within_its_bucket_in_proportion(
    counts: tuple[float, ...], q: float, value: float
) -> None:
    assert quantile(q, BOUNDS, counts) == pytest.approx(value)


def test_nothing_has_no_quantile() -> None:
    assert quantile(0.5, BOUNDS, ()) is None
    assert quantile(0.5, BOUNDS, (0.0, 0.0, 0.0, 0.0)) is None


@given(st.lists(st.floats(0.001, 0.399), min_size=1, max_size=50), st.floats(0.01, 1))
def test_it_is_off_by_its_bucket_at_most(values: list[float], q: float) -> None:
    counts = tuple(float(sum(value <= bound for value in values)) for bound in BOUNDS)
    exact = sorted(values)[max(0, math.ceil(q * len(values)) - 1)]
    found = quantile(q, BOUNDS, counts)
    assert found is not None
    bucket = next(n for n, bound in enumerate(BOUNDS) if exact <= bound)
    assert (BOUNDS[bucket - 1] if bucket else 0.0) <= found <= BOUNDS[bucket] + 1e-9


def test_what_came_between_two_readings() -> None:
    before, after = (1.0, 2.0, 2.0, 3.0), (1.0, 5.0, 6.0, 8.0)
    assert added(before, after) == (0.0, 3.0, 4.0, 5.0)
    assert added((), after) == after
    assert together(before, added(before, after)) == after
    assert together((), after) == together(after, ()) == after
    assert total(after) == 8.0
    assert total(()) == 0.0


def test_buckets_on_their_own_and_those_that_hold_something() -> None:
    one, other = (0.0, 3.0, 4.0, 4.0), (0.0, 0.0, 0.0, 2.0)
    assert separate(one) == (0.0, 3.0, 1.0, 0.0)
    assert occupied([one, other, ()]) == range(1, 4)
    assert occupied([one]) == range(1, 3)
    assert occupied([()]) == range(0)
