"""What a configuration without faults is told it leaves out."""

from __future__ import annotations

from typing import Any

import pytest

from gateway.settings import Settings
from gateway.settings.advice import advice

COMPLETE: dict[str, Any] = {
    "models": {
        "m": {
            "experiment": {"slo_ttft_ms": 500},
            "arms": {
                "x": {"weight": 1, "role": "control", "backends": ["a"]},
                "y": {"weight": 1, "backends": ["b"]},
            },
        }
    },
    "backends": {
        name: {"url": f"http://{name}", "engine": {"max_num_batched_tokens": 512}} for name in "ab"
    },
    "keys": [{"name": "dev", "key": "k", "max_concurrency": 8}],
    "admin": {"key": "k"},
    "metrics": {"key": "k"},
}


def remarks(**changes: Any) -> list[str]:
    return advice(Settings.model_validate(COMPLETE | changes))


def test_a_complete_configuration_is_told_nothing() -> None:
    assert remarks() == []


def test_a_missing_goal_and_a_missing_control() -> None:
    arms = {"x": {"weight": 1, "backends": ["a"]}, "y": {"weight": 0, "backends": ["b"]}}

    assert remarks(models={"m": {"arms": arms}}) == [
        "models.m.experiment.slo_ttft_ms: not set, so no request counts as in time or late",
        "models.m.arms: no arm has the role control; x counts as it",
        "models.m.arms.y.weight: is 0, so only requests that ask for the arm by hand go there",
    ]


def test_arms_none_of_which_can_count_as_control() -> None:
    arms = {
        "x": {"weight": 1, "role": "canary", "backends": ["a"]},
        "y": {"weight": 1, "role": "baseline", "backends": ["b"]},
    }
    models = {"m": {"experiment": {"slo_ttft_ms": 1}, "arms": arms}}

    assert remarks(models=models) == [
        "models.m.arms: no arm has the role control; nothing is compared with it"
    ]


def test_one_arm_has_nothing_to_compare_with_and_its_neighbour_is_unused() -> None:
    arms = {"x": {"weight": 1, "backends": ["a"]}}

    assert remarks(models={"m": {"experiment": {"slo_ttft_ms": 1}, "arms": arms}}) == [
        "models.m.arms: one arm, so there is nothing to compare it with",
        "backends.b: belongs to no arm, so it gets no request",
    ]


def test_a_chunk_so_small_that_prompts_take_many_steps() -> None:
    def chunk(tokens: int) -> dict[str, Any]:
        return {"url": "http://x", "engine": {"max_num_batched_tokens": tokens}}

    assert remarks(backends={"a": chunk(128), "b": chunk(64)}) == [
        "backends.b.engine.max_num_batched_tokens: 64 is below 128, so a prompt of 2000 tokens "
        "takes at least 32 steps to its first token; try 512, then 256 and 1024 beside it"
    ]


def test_engines_that_state_nothing_or_cache_nothing() -> None:
    backends = {
        "a": {"url": "http://a"},
        "b": {"url": "http://b", "engine": {"prefix_caching": False}},
    }
    unverified = "not stated, so what the engine runs with cannot be verified"

    assert remarks(backends=backends) == [
        f"backends.a.engine.max_num_batched_tokens: {unverified}",
        f"backends.b.engine.max_num_batched_tokens: {unverified}",
        "backends.b.engine.prefix_caching: is off, so prompts that begin alike are computed anew "
        "each time; try prefix_caching: true",
    ]


def test_engines_are_checked_against_the_model_they_serve() -> None:
    model = {
        "context_window": 8192,
        "experiment": {"slo_ttft_ms": 1},
        "arms": {"x": {"weight": 1, "backends": ["a"]}, "y": {"weight": 1, "backends": ["b"]}},
    }
    engines = [
        {"max_num_batched_tokens": 8192, "gpu_memory_utilization": 0.97},
        {"max_num_batched_tokens": 1000},
    ]
    backends = {
        name: {"url": f"http://{name}", "engine": engine}
        for name, engine in zip("ab", engines, strict=True)
    }

    found = remarks(models={"m": model}, backends=backends)

    assert [one.partition(", ")[0] for one in found if one.startswith("backends")] == [
        "backends.a.engine.max_num_batched_tokens: 8192 is not below max_model_len (8192)",
        "backends.a.engine.gpu_memory_utilization: 0.97 is above 0.95",
        "backends.b.engine.max_num_batched_tokens: 1000 is no multiple of the block (16 tokens)",
    ]


def test_engines_are_checked_for_the_version_they_state() -> None:
    engine = {"max_num_batched_tokens": 1000, "prefix_caching": True}
    backends = {
        "a": {"url": "http://a", "engine": {**engine, "version": "0.6.3"}},
        "b": {"url": "http://b", "engine": {**engine, "version": "0.32"}},
    }
    found = [one for one in remarks(backends=backends) if one.startswith("backends")]

    assert ["the engine fails on the first request" in one for one in found] == [True, False]
    assert ["costs no cache hits" in one for one in found] == [False, True]


def test_what_an_old_engine_does_by_default_is_not_assumed_of_it() -> None:
    engine = {"version": "0.6.3", "max_num_batched_tokens": 512}
    model = {
        "context_window": 8192,
        "experiment": {"slo_ttft_ms": 1},
        "arms": {"x": {"weight": 1, "backends": ["a"]}, "y": {"weight": 1, "backends": ["b"]}},
    }
    backends = {name: {"url": f"http://{name}", "engine": engine} for name in "ab"}

    found = remarks(models={"m": model}, backends=backends)

    assert not [one for one in found if one.startswith("backends")]


def test_keys_without_limits_and_patterns_without_models() -> None:
    keys = [{"name": "dev", "key": "k", "models": ["claude-*"]}]

    assert remarks(keys=keys) == [
        "models.m: no key may use it",
        "keys[0]: dev has no limits, so it can take the place of every other key",
        "keys[0].models[0]: matches no model",
    ]


def test_sections_that_are_off_unless_they_have_a_key() -> None:
    assert remarks(admin={}, metrics={}) == [
        "admin.key: not set, so the admin API and the commands that use it are off",
        "metrics.key: not set, so /metrics answers this machine only",
    ]


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "10.0.0.7", "gateway.internal"])
def test_keys_that_travel_over_a_network(host: str) -> None:
    assert remarks(server={"host": host}) == [
        "server.host: other machines can reach it, and keys travel unencrypted: put TLS in front"
    ]


@pytest.mark.parametrize("host", ["127.0.0.1", "127.8.8.8", "::1", "localhost"])
def test_loopback_is_this_machine_only(host: str) -> None:
    assert remarks(server={"host": host}) == []
