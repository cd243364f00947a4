"""Gates: met, tie, not met, and the figures they are made from."""

from __future__ import annotations

import pytest

from benchmarks.gates import Gate, State, failed, of_comparison


@pytest.mark.parametrize(
    ("value", "state"),
    [
        (2.0, State.MET),
        (2.01, State.TIE),
        (2.5, State.TIE),
        (2.51, State.NOT_MET),
        (float("inf"), State.NOT_MET),
        (None, State.NOT_MEASURED),
    ],
)
def test_a_limit_has_a_band_of_ties_above_it(value: float | None, state: State) -> None:
    assert Gate("burst", value, 2.0, "times nginx", slack=1.25).state is state


@pytest.mark.parametrize(
    ("value", "state"), [(100.0, State.MET), (80.0, State.TIE), (79.0, State.NOT_MET)]
)
def test_a_least_value_has_its_band_below(value: float, state: State) -> None:
    assert Gate("small", value, 100.0, "times", at_least=True, slack=1.25).state is state


def test_milliseconds_know_no_tie() -> None:
    assert Gate("added", 1.01, 1.0, "ms").state is State.NOT_MET


def test_only_a_broken_gate_fails_a_run() -> None:
    kept = [Gate("a", 1.2, 1.0, "x", slack=1.25), Gate("b", None, 1.0, "x")]
    assert not failed(kept)
    assert failed([*kept, Gate("c", 2.0, 1.0, "x", slack=1.25)])


def test_every_promise_of_the_comparison_is_judged_with_its_own_figure() -> None:
    cpu = {
        ("gateway", "nginx", "small"): 2.9,
        ("gateway", "nginx", "burst"): 2.4,
        ("gateway", "nginx", "paced"): 3.2,
        ("gateway", "nginx", "big"): 3.2,
        ("gateway", "vllm-router", "burst"): 0.2,
        ("gateway", "vllm-router", "paced"): 1.25,
        ("litellm", "gateway", "small"): 99.0,
    }
    judged = of_comparison("gateway", lambda *names: cpu[names], added_ms=0.9)
    assert [(gate.value, gate.state) for gate in judged] == [
        (2.9, State.MET),
        (2.4, State.TIE),
        (3.2, State.NOT_MET),
        (3.2, State.MET),
        (0.9, State.MET),
        (0.2, State.MET),
        (1.25, State.MET),
        (99.0, State.TIE),
    ]
