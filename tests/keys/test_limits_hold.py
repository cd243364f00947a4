"""Limits under random histories: the burst rule, concurrency, the long run."""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from gateway.keys.keyring import Key
from gateway.keys.limits import Grant, Limiter, LimitReached
from tests.keys.conftest import Clock

KEY = Key("id", "k")

# Mostly bursts, small steps and rests of about a minute, where a limit is most likely to slip.
steps = st.one_of(
    st.just(0.0), st.floats(0, 2), st.floats(0, 70), st.sampled_from([1.0, 12.0, 59.999, 60.0])
)


def admitted_at(limit: int, waits: list[float]) -> list[float]:
    clock = Clock()
    limiter, key = Limiter(clock), replace(KEY, requests_per_minute=limit)
    admitted = []
    for wait in waits:
        clock.now += wait
        try:
            limiter.admit(key).release()
        except LimitReached:
            continue
        admitted.append(clock.now)
    return admitted


@given(st.integers(1, 12), st.lists(steps, max_size=120), st.floats(0, 200))
@settings(max_examples=300, deadline=None)
def test_no_stretch_of_time_sees_more_than_the_burst_rule(
    limit: int, waits: list[float], stretch: float
) -> None:
    """At most N · (1 + T / 60) in any T seconds, so at most 2 N in any minute."""
    admitted = admitted_at(limit, waits)
    for length in (0.0, 60.0, stretch):
        most = int(limit * (1 + length / 60) + 2e-3)
        for first, start in enumerate(admitted):
            assert bisect_right(admitted, start + length) - first <= most


@given(st.integers(1, 12), st.lists(steps, min_size=1, max_size=120))
@settings(deadline=None)
def test_a_minute_of_rest_restores_the_whole_allowance(limit: int, waits: list[float]) -> None:
    after_rest = [*waits, 60.0, *[0.0] * (limit - 1)]
    end = sum(waits) + 60.0
    assert sum(t >= Clock().now + end - 1e-6 for t in admitted_at(limit, after_rest)) >= limit


@given(st.integers(1, 600), st.integers(1, 40))
@settings(max_examples=50, deadline=None)
def test_the_long_run_keeps_to_the_limit(limit: int, eager: int) -> None:
    """Asking all the time gets N a minute after the first burst, neither less nor more."""
    clock = Clock()
    limiter, key = Limiter(clock), replace(KEY, requests_per_minute=limit)
    count = 0
    period = 60 / limit / eager
    asked = min(20 * limit * eager, 5_000)
    for _ in range(asked):
        try:
            limiter.admit(key).release()
            count += 1
        except LimitReached:
            pass
        clock.now += period
    expected = limit + asked / eager
    assert count <= min(asked, expected + 1)
    assert count >= min(asked, expected * 0.99 - 1)


class Use(RuleBasedStateMachine):
    """Requests begin, are charged and end in any order, over reloads; the books stay right."""

    def __init__(self) -> None:
        super().__init__()
        self.clock = Clock()
        self.limiter = Limiter(self.clock)
        self.key = replace(KEY, max_concurrency=3, tokens_per_minute=600)
        self.running: list[Grant] = []
        self.ended: list[Grant] = []
        self.left = 600.0

    @rule()
    def begin(self) -> None:
        full = len(self.running) >= (self.key.max_concurrency or 0)
        if full or self.left < 1 - 1e-2:
            with pytest.raises(LimitReached):
                self.limiter.admit(self.key)
        elif self.left >= 1:
            self.running.append(self.limiter.admit(self.key))

    @precondition(lambda self: self.running)
    @rule(tokens=st.integers(0, 2000), data=st.data())
    def end(self, tokens: int, data: st.DataObject) -> None:
        grant = self.running.pop(data.draw(st.integers(0, len(self.running) - 1)))
        grant.charge(tokens)
        grant.release()
        self.left -= tokens
        self.ended.append(grant)

    @precondition(lambda self: self.ended)
    @rule(data=st.data())
    def end_again(self, data: st.DataObject) -> None:
        grant = data.draw(st.sampled_from(self.ended))
        grant.charge(100)
        grant.release()

    @rule(seconds=st.floats(0, 100))
    def wait(self, seconds: float) -> None:
        self.clock.now += seconds
        self.left = min(600.0, self.left + seconds * 10)

    @rule(most=st.integers(1, 4))
    def reload(self, most: int) -> None:
        self.key = replace(self.key, max_concurrency=most)

    @invariant()
    def the_books_are_right(self) -> None:
        standing = self.limiter.standing(self.key)
        assert standing.running == len(self.running)
        assert standing.tokens_left is not None
        assert abs(standing.tokens_left - max(self.left, 0)) <= 1


TestUse = Use.TestCase
TestUse.settings = settings(max_examples=60, stateful_step_count=40, deadline=None)
