from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.console.split import moved, percents

WEIGHTS = st.dictionaries(
    st.sampled_from("abcdef"), st.floats(0, 1e6), min_size=1, max_size=6
).filter(lambda weights: any(weight > 0.01 for weight in weights.values()))


@given(WEIGHTS)
def test_percents_make_up_the_whole_and_are_near(weights: dict[str, float]) -> None:
    found = percents(weights)
    total = sum(weights.values())
    assert list(found) == list(weights)
    assert sum(found.values()) == 100
    assert all(abs(found[name] - 100 * weight / total) < 1 for name, weight in weights.items())


@given(WEIGHTS.filter(lambda weights: len(weights) > 1), st.integers(0, 100), st.data())
def test_who_is_moved_gets_there_and_the_whole_stays(
    weights: dict[str, float], to: int, data: st.DataObject
) -> None:
    arm = data.draw(st.sampled_from(sorted(weights)))
    found = moved(percents(weights), arm, to)
    assert list(found) == list(weights)
    assert (found[arm], sum(found.values())) == (to, 100)
    assert all(share >= 0 for share in found.values())


@pytest.mark.parametrize(
    ("shares", "arm", "to", "after"),
    [
        ({"a": 50, "b": 50}, "b", 10, {"a": 90, "b": 10}),
        ({"a": 100, "b": 0}, "a", 40, {"a": 40, "b": 60}),
        ({"a": 60, "b": 30, "c": 10}, "a", 20, {"a": 20, "b": 60, "c": 20}),
        ({"a": 100, "b": 0, "c": 0}, "a", 50, {"a": 50, "b": 25, "c": 25}),
        ({"a": 100}, "a", 30, {"a": 100}),
        ({"a": 50, "b": 50}, "a", 500, {"a": 100, "b": 0}),
    ],
)
def test_the_others_share_the_rest_as_before(
    shares: dict[str, int], arm: str, to: int, after: dict[str, int]
) -> None:
    assert moved(shares, arm, to) == after
