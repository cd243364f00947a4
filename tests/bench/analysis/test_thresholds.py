"""The article's thresholds, set, switched off and not measured."""

from __future__ import annotations

from dataclasses import replace

import pytest

from gateway.bench.analysis.thresholds import check, defaults, set_limits
from gateway.bench.results import Spread
from tests.bench.made import arms_of


def test_the_articles_limits_are_on_where_a_prefix_is_shared() -> None:
    assert defaults(shares_prefix=True) == {
        "p90": 350,
        "memory": 0.70,
        "gpu": 0.78,
        "hit-rate": 0.80,
    }


def test_cold_prompts_have_no_hit_rate_to_hold() -> None:
    assert set(defaults(shares_prefix=False)) == {"memory", "gpu"}


def test_limits_are_set_and_switched_off() -> None:
    found = set_limits({"p90": 350, "memory": 0.7}, ["p99=280", "memory=off", "p90=500", "gpu=off"])
    assert found == {"p90": 500, "p99": 280}


@pytest.mark.parametrize(
    "wrong", ["p90", "p90=", "p90=fast", "p90=nan", "p42=1", "=1", "hit_rate=0.8"]
)
def test_a_limit_that_is_none_is_refused(wrong: str) -> None:
    with pytest.raises(ValueError, match=r"none of|no NAME=NUMBER"):
        set_limits({}, [wrong])


def test_one_that_holds() -> None:
    (found,) = check(arms_of(a=[100, 350, 400]), {"p90": 350})
    assert found.held is True and found.value == 350
    assert found.sentence == "P90 TTFT ≤ 350 ms: holds, at 350 ms."


def test_one_that_does_not_says_what_to_check() -> None:
    (found,) = check(arms_of(a=[100, 351, 400]), {"p90": 350})
    assert found.held is False
    assert "does not hold, at 351 ms. The budget is not in force" in found.sentence
    assert "prefix caching" in found.sentence


def test_one_that_must_be_reached() -> None:
    (arm,) = arms_of(a=[1])
    for value, held in ((0.8, True), (0.79, False)):
        spread = Spread(median=value, low=value, high=value, values=(value,))
        (found,) = check([replace(arm, figures={"hit_rate": spread})], {"hit-rate": 0.8})
        assert found.held is held


@pytest.mark.parametrize(
    ("peak", "advice"),
    [
        (None, "The cache does not fit the traffic: raise --gpu-memory-utilization"),
        (0.5, "The cache does not fit the traffic: raise --gpu-memory-utilization"),
        (
            0.49,
            "Memory is hardly the cause, at a KV peak of 49 %: either the shared prefix is too ",
        ),
    ],
)
def test_memory_is_no_cause_of_misses_where_the_cache_has_room(
    peak: float | None, advice: str
) -> None:
    (arm,) = arms_of(a=[1])
    figures = {
        name: Spread(median=value, low=value, high=value, values=(value,))
        for name, value in (("hit_rate", 0.6), ("kv_usage_peak", peak))
        if value is not None
    }
    (found,) = check([replace(arm, figures=figures)], {"hit-rate": 0.8})
    assert f"does not hold, at 60 %. {advice}" in found.sentence
    assert ("--prefix-tokens of at least 80 % of the prompt" in found.sentence) is (peak == 0.49)


@pytest.mark.parametrize(
    ("name", "figure", "most"),
    [("p90", "p90_ttft_ms", 10), ("p99", "p99_ttft_ms", 1), ("hit-rate", "hit_rate", 50)],
)
def test_one_is_not_judged_where_too_many_requests_failed(
    name: str, figure: str, most: int
) -> None:
    (arm,) = arms_of(a=[1])
    spread = Spread(median=1, low=1, high=1, values=(1,))
    for failed, held in ((most, True), (most + 1, None)):
        errors = {"status 429": 1, "timeout": failed - 1}
        one = replace(arm, requests=100, figures={figure: spread}, errors=errors)
        (found,) = check([one], {name: 1})
        assert found.held is held, found.sentence
    why = f"not judged, {most + 1} of 100 requests failed, more than {most} %."
    assert found.sentence.endswith(why)


def test_one_that_was_not_measured_neither_holds_nor_fails() -> None:
    found = check(arms_of(a=[1]), {"memory": 0.7, "hit-rate": 0.8})
    assert [one.held for one in found] == [None, None]
    assert "not measured" in found[0].sentence and "--dcgm" in found[0].sentence
    assert "--engine" in found[1].sentence
