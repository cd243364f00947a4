"""Percentiles against the standard library's, and spreads of rounds."""

from __future__ import annotations

from statistics import quantiles

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.bench.analysis.percentiles import described, percentile, spread

times = st.floats(min_value=0, max_value=1e7, allow_nan=False)
samples = st.lists(times, min_size=2, max_size=300)


@given(samples, st.integers(1, 99))
def test_as_the_standard_librarys_inclusive_quantiles(values: list[float], percent: int) -> None:
    expected = quantiles(values, n=100, method="inclusive")[percent - 1]
    assert percentile(sorted(values), percent) == pytest.approx(expected, rel=1e-9, abs=1e-9)


@given(st.lists(times, min_size=1), st.floats(0, 100), st.floats(0, 100))
def test_grows_with_the_percentage_and_stays_within(
    values: list[float], one: float, other: float
) -> None:
    ordered = sorted(values)
    low, high = percentile(ordered, min(one, other)), percentile(ordered, max(one, other))
    assert ordered[0] <= low <= high * (1 + 1e-12) and high <= ordered[-1] * (1 + 1e-12)


@given(times, st.integers(1, 50), st.floats(0, 100))
def test_of_equals_is_exactly_their_value(value: float, count: int, percent: float) -> None:
    assert percentile([value] * count, percent) == value


@pytest.mark.parametrize(("percent", "expected"), [(0, 10), (50, 25), (90, 37), (100, 40)])
def test_of_four_values(percent: float, expected: float) -> None:
    assert percentile([10, 20, 30, 40], percent) == pytest.approx(expected)


def test_described_has_vllms_names() -> None:
    found = described("ttft", [100.0, 200.0, 300.0, 400.0])
    assert found == {
        "mean_ttft_ms": 250.0,
        "median_ttft_ms": 250.0,
        "std_ttft_ms": 111.803,  # of the population, as numpy's
        "p50_ttft_ms": 250.0,
        "p90_ttft_ms": 370.0,
        "p95_ttft_ms": 385.0,
        "p99_ttft_ms": 397.0,
    }


def test_nothing_is_described_as_unknown_not_as_zero() -> None:
    assert set(described("itl", []).values()) == {None}


def test_a_spread_keeps_the_order_of_rounds_and_skips_the_unknown() -> None:
    found = spread([30.0, None, 10.0, 20.0])
    assert found is not None
    assert (found.median, found.low, found.high) == (20.0, 10.0, 30.0)
    assert found.values == (30.0, None, 10.0, 20.0)


def test_there_is_no_spread_of_unknowns() -> None:
    assert spread([None, None]) is None
