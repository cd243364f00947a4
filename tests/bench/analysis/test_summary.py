"""Medians of rounds, and what is said of differences."""

from __future__ import annotations

import pytest

from gateway.bench.analysis.summary import compare, summarise
from gateway.bench.results import EngineUse, ErrorKind, GpuUse
from tests.bench.made import arms_of, failed, ok, round_of


def only(figure: str, *, confounded: bool = False, **ttfts: list[float]) -> tuple[bool, str]:
    """Whether a difference is called one, and the sentence."""
    found = [one for one in compare(arms_of(("b",), **ttfts), confounded) if one.figure == figure]
    assert len(found) == 1
    return found[0].separate, found[0].sentence


def test_the_median_of_rounds_counts_and_the_spread_stands_beside() -> None:
    (arm,) = arms_of(a=[100, 900, 200])
    spread = arm.figures["p90_ttft_ms"]
    assert (spread.median, spread.low, spread.high) == (200, 100, 900)
    assert spread.values == (100, 900, 200)


def test_a_difference_between_spreads_apart_is_called_one_with_its_chance() -> None:
    separate, sentence = only("p90_ttft_ms", a=[100, 101, 102], b=[200, 210, 220])
    assert separate
    assert sentence == (
        "P90 TTFT: b 210 (200-220) ms, a 101 (100-102) ms. b is 108 % later; the spreads do not "
        "overlap, which 3 rounds of equals would show in 1 of 10 comparisons."
    )


def test_more_rounds_make_chance_rarer() -> None:
    _, sentence = only("p90_ttft_ms", a=[1, 2, 3, 4, 5], b=[9, 9, 9, 9, 9])
    assert "1 of 126 comparisons" in sentence


def test_sooner_is_said_of_the_faster() -> None:
    _, sentence = only("p50_ttft_ms", a=[200, 200, 200], b=[100, 100, 100])
    assert "b is 50 % sooner" in sentence


@pytest.mark.parametrize(
    ("a", "b", "words"),
    [
        ([100], [900], "One round proves nothing"),
        ([100, 101], [900, 901], "2 rounds are too few"),
        ([100, 101, 102], [900], "One round proves nothing"),
        ([100, 150, 200], [190, 250, 300], "The spreads overlap"),
        ([100, 100, 100], [100, 100, 100], "The spreads overlap"),
        ([100, 110, 120], [120, 130, 140], "The spreads overlap"),
        ([100, 300, 110], [200, 210, 220], "The spreads overlap"),
    ],
)
def test_no_difference_is_called_one(a: list[float], b: list[float], words: str) -> None:
    separate, sentence = only("p90_ttft_ms", a=a, b=b)
    assert not separate and words in sentence


def test_a_confounded_difference_is_not_called_one() -> None:
    separate, sentence = only("p90_ttft_ms", confounded=True, a=[1, 1, 1], b=[9, 9, 9])
    assert not separate and "Confounded" in sentence


def test_every_pair_is_compared_once() -> None:
    arms = arms_of(a=[1] * 3, b=[2] * 3, c=[3] * 3)
    pairs = [(one.base, one.other) for one in compare(arms, False) if one.figure == "p50_ttft_ms"]
    assert pairs == [("a", "b"), ("a", "c"), ("b", "c")]


def test_errors_are_counted_by_kind_and_status() -> None:
    samples = [ok(1.0), failed(), *(failed(ErrorKind.STATUS, status=429) for _ in range(2))]
    (arm,) = summarise(["a"], [round_of("a", 1, samples)], {})
    assert arm.errors == {"status 429": 2, "timeout": 1}
    assert arm.requests == 4


def test_only_an_arms_own_engines_and_gpus_count() -> None:
    engines = (
        EngineUse(name="x", arm="a", hit_rate=0.9, kv_usage_peak=0.2),
        EngineUse(name="y", arm="a", hit_rate=0.7, kv_usage_peak=0.3),
        EngineUse(name="z", arm="b", hit_rate=0.1, kv_usage_peak=0.99),
    )
    gpus = (
        GpuUse(name="0", arm="a", memory_peak=0.5, utilisation=0.8),
        GpuUse(name="1", arm="b", memory_peak=0.9, utilisation=0.0),
    )
    (arm,) = summarise(["a"], [round_of("a", 1, [ok(1.0)], engines=engines, gpus=gpus)], {})
    assert arm.figures["hit_rate"].median == 0.7
    assert arm.figures["kv_usage_peak"].median == 0.3
    assert arm.figures["gpu_memory_peak"].median == 0.5
    assert arm.figures["gpu_utilisation"].median == 0.8


def test_a_round_that_the_gateway_splits_is_of_all_engines_and_gpus() -> None:
    engines = (
        EngineUse(name="x", arm="a", hit_rate=0.9, kv_usage_peak=0.2),
        EngineUse(name="y", arm="b", hit_rate=0.7, kv_usage_peak=0.3),
    )
    gpus = (GpuUse(name="0", arm="a", memory_peak=0.5, utilisation=0.8),)
    (arm,) = summarise([""], [round_of("", 1, [ok(1.0)], engines=engines, gpus=gpus)], {})
    assert arm.figures["hit_rate"].median == 0.7
    assert arm.figures["kv_usage_peak"].median == 0.3
    assert arm.figures["gpu_memory_peak"].median == 0.5


def test_what_nobody_measured_is_absent() -> None:
    (arm,) = arms_of(a=[1.0])
    assert "hit_rate" not in arm.figures and "gpu_memory_peak" not in arm.figures
