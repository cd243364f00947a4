"""How two tools' figures are held against each other; the tools themselves: tests/real_engine."""

from __future__ import annotations

import pytest

from benchmarks.engine.versus import FIGURES, judge, prompts


def figures(value: float) -> dict[str, float]:
    return dict.fromkeys(FIGURES, value)


@pytest.mark.parametrize(
    ("ours", "difference", "met"),
    [(104.9, 0.049, True), (95.1, -0.049, True), (105.2, 0.052, False), (94.0, -0.06, False)],
)
def test_medians_within_five_percent_agree(ours: float, difference: float, met: bool) -> None:
    found = judge([{"gateway": figures(ours), "vllm": figures(100.0)}])
    assert [one.figure for one in found] == list(FIGURES)
    assert [one.difference for one in found] == [pytest.approx(difference)] * len(FIGURES)
    assert all(one.met is met for one in found)


def test_one_round_that_was_disturbed_decides_nothing() -> None:
    rounds = [{"gateway": figures(100.0), "vllm": figures(100.0)} for _ in range(3)]
    rounds[1] = {"gateway": figures(900.0), "vllm": figures(101.0)}
    assert all(one.met for one in judge(rounds))


def test_no_two_prompts_begin_alike() -> None:
    values = [one["conversations"][0]["value"] for one in prompts(64)]
    assert len({value.partition(".")[0] for value in values}) == 64
