"""Places on a backend, and what makes it unusable."""

from __future__ import annotations

import pytest

from gateway.records import EngineFacts
from gateway.routing.backend import Backend
from gateway.routing.circuit import Circuit
from gateway.settings import BackendSettings
from tests.routing.conftest import Clock


@pytest.fixture
def backend(clock: Clock) -> Backend:
    settings = BackendSettings(url="http://one:8000", max_concurrency=2)
    return Backend("one", settings.url, None, "arm", "model", settings, Circuit(clock))


def test_a_new_backend_is_usable_though_nothing_has_confirmed_it(backend: Backend) -> None:
    assert backend.usable()
    assert not backend.checked


def test_claims_end_at_max_concurrency(backend: Backend) -> None:
    assert [backend.claim() for _ in range(3)] == [True, True, False]
    assert backend.outstanding == 2
    backend.release()
    assert backend.claim()


def test_a_claim_refused_takes_nothing(backend: Backend) -> None:
    backend.up = False
    assert not backend.claim()
    assert backend.outstanding == 0


@pytest.mark.parametrize("attribute", ["up", "enabled"])
def test_down_or_taken_out_means_no_new_requests(backend: Backend, attribute: str) -> None:
    assert backend.claim()
    setattr(backend, attribute, False)
    assert not backend.usable()
    assert not backend.claim()
    assert backend.outstanding == 1, "what runs on it finishes"
    setattr(backend, attribute, True)
    assert backend.claim()


def test_a_release_too_many_is_an_error_and_changes_nothing(backend: Backend) -> None:
    backend.claim()
    backend.release()
    with pytest.raises(ValueError, match="one released more often than claimed"):
        backend.release()
    assert backend.outstanding == 0


def test_a_claim_is_the_one_trial_of_a_half_open_circuit(backend: Backend, clock: Clock) -> None:
    for _ in range(5):
        backend.circuit.failure()
    assert not backend.usable()
    clock.now += 5
    assert backend.usable()
    assert [backend.claim() for _ in range(2)] == [True, False]
    backend.circuit.success()
    assert backend.claim()


def test_a_full_backend_does_not_spend_its_trial(backend: Backend, clock: Clock) -> None:
    assert backend.claim()
    assert backend.claim()
    for _ in range(5):
        backend.circuit.failure()
    clock.now += 5
    assert not backend.claim()
    backend.release()
    assert backend.claim()


@pytest.mark.parametrize(
    ("configured", "found", "api", "offered"),
    [
        ("auto", None, "messages", True),
        ("auto", {"chat"}, "chat", True),
        ("auto", {"chat"}, "messages", False),
        ("auto", {"chat"}, "other", True),
        (["chat"], None, "messages", False),
        (["chat", "messages"], {"chat"}, "messages", True),
    ],
)
def test_what_it_offers_is_what_settings_say_else_what_was_found_else_a_try(
    clock: Clock, configured: object, found: set[str] | None, api: str, offered: bool
) -> None:
    settings = BackendSettings.model_validate({"url": "http://one:8000", "apis": configured})
    backend = Backend("one", settings.url, None, "arm", "model", settings, Circuit(clock))
    assert backend.offers(api) is (offered or configured == "auto"), "before it was asked"
    backend.facts = EngineFacts(apis=frozenset(found) if found is not None else None)
    assert backend.offers(api) is offered
