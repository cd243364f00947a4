from __future__ import annotations

from itertools import pairwise

from gateway.telemetry.buckets import LATENCY, OVERHEAD, PROMPT_BOUNDS, PROMPT_LABELS


def test_latency_bounds_follow_their_rule() -> None:
    steps = [0.01]
    while steps[-1] * 1.15 <= 60:
        steps.append(0.01 * 1.15 ** len(steps))
    rounded = tuple(float(f"{step:.3g}") for step in steps)
    assert (0.001, 0.002, 0.005, *rounded, 120, 300, 600) == LATENCY


def test_no_gap_a_percentile_could_hide_in() -> None:
    """LiteLLM's buckets jump from 0.5 to 1 to 2 to 5 s: a P90 of 1.1 s reads as anything to 2 s."""
    steps = [bound for bound in LATENCY if 0.01 <= bound <= 60]
    assert max(high / low for low, high in pairwise(steps)) < 1.16
    assert sum(0.5 < bound <= 5 for bound in LATENCY) >= 16


def test_overhead_bounds_resolve_what_the_gateway_promises() -> None:
    assert sum(bound <= 0.001 for bound in OVERHEAD) >= 7
    assert list(OVERHEAD) == sorted(set(OVERHEAD))


def test_a_prompt_bound_between_two_labels() -> None:
    assert len(PROMPT_LABELS) == len(PROMPT_BOUNDS) + 1
