"""Loads in virtual time: hand-worked cases, and that the parts make up the whole."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.simulator.latency import StepLatency, Work
from gateway.simulator.virtual import Served, serve
from tests.simulator.loads import scheduler, sequence

A_SECOND = StepLatency(base=1.0, per_token=0.0, per_pair=0.0)


def by_arrival(served: list[Served]) -> list[Served]:
    return sorted(served, key=lambda one: one.arrived)


def test_a_request_that_comes_during_a_step_joins_the_next() -> None:
    load = [(0.0, sequence(4, 3)), (0.25, sequence(4, 1, name=1))]
    first, second = by_arrival(serve(scheduler(8), A_SECOND, load))
    assert (first.first, first.last) == (1.0, 3.0)
    assert (second.arrived, second.joined_late, second.first) == (0.25, 0.25, 2.0)
    assert (second.until_first.steps, second.ttft) == (2, 1.75)
    assert first.until_first == Work(1, 4, 10.0)


def test_an_idle_engine_begins_when_somebody_comes() -> None:
    load = [(0.0, sequence(4)), (10.5, sequence(4, name=1))]
    _, second = by_arrival(serve(scheduler(8), A_SECOND, load))
    assert (second.first, second.joined_late, second.until_first.steps) == (11.5, 0.0, 1)


def test_in_a_closed_loop_the_next_comes_when_one_has_ended() -> None:
    first, *rest = [sequence(4, name=name) for name in range(3)]
    served = serve(scheduler(8), A_SECOND, [(0.0, first)], rest)
    assert [one.arrived for one in served] == [0.0, 1.0, 2.0]
    assert [one.joined_late for one in served] == [0.0, 0.0, 0.0]


def test_with_a_pause_it_finds_the_next_step_begun() -> None:
    """Two users: while one is away, the other one's step begins."""
    long, short, follower = sequence(4, 5), sequence(4, name=1), sequence(4, name=2)
    served = serve(scheduler(8), A_SECOND, [(0.0, long), (0.0, short)], [follower], 0.1)
    late = next(one for one in served if one.sequence is follower)
    assert [late.arrived, late.joined_late] == pytest.approx([1.1, 0.1])
    assert late.first == 3.0


def test_nothing_comes_of_nothing() -> None:
    assert serve(scheduler(8), A_SECOND, []) == []


def test_a_request_that_can_never_fit_is_refused() -> None:
    with pytest.raises(ValueError, match="do not fit in the KV cache"):
        serve(scheduler(8, blocks=1, block_size=4), A_SECOND, [(0.0, sequence(40))])


requests = st.tuples(st.floats(0, 3), st.integers(1, 60), st.integers(1, 5))


@given(
    st.lists(requests, min_size=1, max_size=12),
    st.integers(0, 5),
    st.floats(0, 0.5),
    st.sampled_from([4, 16, 64]),
)
def test_a_time_is_its_work_less_what_had_passed(
    load: list[tuple[float, int, int]], followers: int, pause: float, budget: int
) -> None:
    """What a fit rests on: with the work known, times are linear in the three parameters."""
    latency = StepLatency(base=0.05, per_token=0.002, per_pair=1e-5)
    arrivals = [(at, sequence(own, n, name=i)) for i, (at, own, n) in enumerate(load)]
    rest = [sequence(30, 2, name=100 + number) for number in range(followers)]
    served = serve(scheduler(budget, seqs=4, blocks=40), latency, arrivals, rest, pause)
    assert len(served) == len(load) + followers
    for one in served:
        expected = latency.seconds(one.until_first) - one.joined_late
        assert one.ttft == pytest.approx(expected, abs=1e-9)
        assert one.sequence.generated == one.sequence.max_tokens
