"""Engines that are not what they are declared to be, or not alike."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from gateway.records import EngineFacts
from gateway.settings import EngineSettings
from gateway.settings.claims import differences, drift

TOLD = EngineFacts(
    version="0.32.0",
    max_model_len=8192,
    max_num_batched_tokens=512,
    max_num_seqs=128,
    block_size=16,
    cache_tokens=100_000,
    prefix_caching=True,
    gpu_memory_utilization=0.9,
)


@pytest.mark.parametrize(
    ("declared", "found"),
    [
        ({"max_num_batched_tokens": 512, "block_size": 16, "prefix_caching": True}, ()),
        (
            {"max_num_batched_tokens": 2048},
            ("max_num_batched_tokens is declared as 2048, the engine runs 512",),
        ),
        ({"version": "0.32"}, ()),
        ({"version": "0.31"}, ("version is declared as 0.31, the engine runs 0.32.0",)),
        (
            {"prefix_caching": False, "block_size": 128},
            (
                "block_size is declared as 128, the engine runs 16",
                "prefix_caching is declared as false, the engine runs true",
            ),
        ),
        (
            {"gpu_memory_utilization": 0.92, "max_num_seqs": 64},
            (
                "max_num_seqs is declared as 64, the engine runs 128",
                "gpu_memory_utilization is declared as 0.92, the engine runs 0.9",
            ),
        ),
    ],
)
def test_what_runs_otherwise_than_declared(declared: dict[str, Any], found: tuple[str]) -> None:
    told = differences(EngineSettings.model_validate(declared), TOLD)
    assert tuple(str(one) for one in told) == found


def test_nothing_declared_or_nothing_told_is_no_difference() -> None:
    assert differences(None, TOLD) == ()
    assert (
        differences(EngineSettings(max_num_batched_tokens=512, block_size=1), EngineFacts()) == ()
    )


def test_backends_that_run_alike_do_not_drift() -> None:
    nearly = msgspec.structs.replace(TOLD, cache_tokens=104_999)
    assert drift({"a": TOLD, "b": nearly, "c": EngineFacts()}) == ()
    assert drift({"a": TOLD}) == ()
    assert drift({}) == ()


def test_what_differs_between_backends_is_told_with_their_names() -> None:
    other = msgspec.structs.replace(
        TOLD, version="0.31.1", max_num_batched_tokens=2048, cache_tokens=50_000
    )
    assert drift({"b": other, "a": TOLD}) == (
        "version is 0.32.0 on a, 0.31.1 on b",
        "max_num_batched_tokens is 512 on a, 2048 on b",
        "the KV cache holds 100000 on a, 50000 on b tokens",
    )


def test_a_build_of_one_s_own_can_be_of_any_version() -> None:
    told = msgspec.structs.replace(TOLD, version="main-4f35be1")

    assert differences(EngineSettings(version="0.32"), told) == ()
