"""When a circuit opens, how it finds its way back, and what a health probe can do about it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.routing.circuit import Circuit
from tests.routing.conftest import Clock


@pytest.fixture
def circuit(clock: Clock) -> Circuit:
    return Circuit(clock)


def fail(circuit: Circuit, times: int) -> None:
    for _ in range(times):
        circuit.failure()


def test_opens_on_the_fifth_failure_in_a_row(circuit: Circuit) -> None:
    fail(circuit, 4)
    assert circuit.state == "closed"
    assert circuit.allows()
    circuit.failure()
    assert circuit.state == "open"
    assert not circuit.allows()


def test_a_success_in_between_starts_the_count_anew(circuit: Circuit) -> None:
    fail(circuit, 4)
    circuit.success()
    fail(circuit, 4)
    assert circuit.state == "closed"


def test_one_trial_goes_through_after_the_cooldown(circuit: Circuit, clock: Clock) -> None:
    fail(circuit, 5)
    clock.now += 4.99
    assert not circuit.allows()
    clock.now += 0.01
    assert circuit.state == "half_open"
    assert circuit.allows()
    assert circuit.allows(), "asking takes nothing"
    circuit.begin()
    assert circuit.state == "half_open"
    assert not circuit.allows()
    circuit.success()
    assert circuit.state == "closed"
    assert circuit.allows()


def test_each_failed_trial_doubles_the_cooldown_up_to_a_minute(
    circuit: Circuit, clock: Clock
) -> None:
    fail(circuit, 5)
    for cooldown in (5, 10, 20, 40, 60, 60):
        clock.now += cooldown - 0.001
        assert circuit.state == "open"
        clock.now += 0.001
        assert circuit.allows()
        circuit.begin()
        circuit.failure()
        assert circuit.state == "open"


def test_a_successful_trial_brings_the_first_cooldown_back(circuit: Circuit, clock: Clock) -> None:
    fail(circuit, 5)
    clock.now += 5
    circuit.begin()
    circuit.failure()
    clock.now += 10
    circuit.begin()
    circuit.success()
    fail(circuit, 5)
    clock.now += 5
    assert circuit.allows()


def test_the_open_requests_of_a_dead_backend_do_not_lengthen_the_cooldown(
    circuit: Circuit, clock: Clock
) -> None:
    fail(circuit, 100)
    clock.now += 5
    assert circuit.allows()


def test_a_late_success_does_not_close_an_open_circuit(circuit: Circuit) -> None:
    fail(circuit, 5)
    circuit.success()
    assert circuit.state == "open"


def test_a_trial_nobody_reports_on_does_not_shut_the_backend_out(
    circuit: Circuit, clock: Clock
) -> None:
    fail(circuit, 5)
    clock.now += 5
    circuit.begin()
    clock.now += 4.99
    assert not circuit.allows()
    clock.now += 0.01
    assert circuit.allows()


def test_a_health_probe_does_not_close_it_before_the_cooldown(
    circuit: Circuit, clock: Clock
) -> None:
    fail(circuit, 5)
    clock.now += 4.99
    circuit.probed()
    assert circuit.state == "open"


def test_a_health_probe_does_not_close_it_during_a_trial(circuit: Circuit, clock: Clock) -> None:
    fail(circuit, 5)
    clock.now += 5
    circuit.begin()
    circuit.probed()
    assert circuit.state == "half_open"
    assert not circuit.allows()


def test_closed_by_a_health_probe_it_opens_at_the_first_failure_and_for_longer(
    circuit: Circuit, clock: Clock
) -> None:
    fail(circuit, 5)
    for cooldown in (5, 10, 20, 40, 60, 60):
        clock.now += cooldown - 0.001
        circuit.probed()
        assert circuit.state == "open"
        clock.now += 0.001
        circuit.probed()
        assert circuit.state == "closed"
        circuit.failure()
        assert circuit.state == "open"


def test_a_request_that_succeeds_ends_the_probation(circuit: Circuit, clock: Clock) -> None:
    fail(circuit, 5)
    clock.now += 5
    circuit.probed()
    circuit.success()
    fail(circuit, 4)
    assert circuit.state == "closed"
    circuit.failure()
    clock.now += 5
    assert circuit.allows()


def test_a_health_probe_means_nothing_to_a_closed_circuit(circuit: Circuit) -> None:
    fail(circuit, 3)
    circuit.probed()
    fail(circuit, 1)
    assert circuit.state == "closed"
    circuit.failure()
    assert circuit.state == "open"


@given(st.lists(st.sampled_from(["failure", "success", "probed", "begin", "wait"])))
def test_whatever_happens_it_lets_a_request_through_within_a_minute(steps: list[str]) -> None:
    clock = Clock()
    circuit = Circuit(clock)
    for step in steps:
        if step == "wait":
            clock.now += 3
        elif step != "begin":
            getattr(circuit, step)()
        elif circuit.allows():
            circuit.begin()
    assert circuit.allows() or circuit.state != "closed"
    clock.now += 60
    assert circuit.allows()
