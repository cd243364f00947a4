"""Chunks against blocks: three engines, three answers."""

from __future__ import annotations

from typing import Any

import pytest

from gateway.vllm import EngineConfig, Finding, Severity, Version, can_reuse_prefix
from gateway.vllm.alignment import alignment


def found(version: str, chunk: int, **changes: Any) -> list[Finding]:
    config = EngineConfig.model_validate(
        {
            "model": "m",
            "max_num_batched_tokens": chunk,
            "chunked_prefill": True,
            "prefix_caching": True,
            "block_size": 16,
        }
        | changes
    )
    return list(alignment(config, Version.parse(version)))


@pytest.mark.parametrize("version", ["0.6.3", "0.7.3", "0.10.2", "0.32"])
@pytest.mark.parametrize("chunk", [16, 64, 128, 512, 2048])
def test_multiples_are_fine_everywhere(version: str, chunk: int) -> None:
    assert found(version, chunk) == []


@pytest.mark.parametrize("chunk", [100, 1000, 8])
def test_0_6_fails_on_the_first_request(chunk: int) -> None:
    (only,) = found("0.6.3.post1", chunk)

    assert only.severity is Severity.ERROR
    assert "the engine fails on the first request" in only.reason
    assert not can_reuse_prefix(4000, chunk, 16)


@pytest.mark.parametrize("version", ["0.7.3", "0.8.5", "0.10.2"])
def test_later_v0_rounds_down(version: str) -> None:
    (only,) = found(version, 100, env={"VLLM_USE_V1": "0"})

    assert only.severity is Severity.WARNING
    assert only.reason.endswith("so the engine computes chunks of 96")
    assert only.advice == "a multiple of 16, such as 96"


def test_later_v0_computes_nothing_below_a_block() -> None:
    (only,) = found("0.7.3", 100, block_size=128)

    assert (only.severity, only.advice) == (Severity.ERROR, "a multiple of 128, such as 128")


@pytest.mark.parametrize("version", ["0.8.5", "0.10.2", "0.11", "0.32"])
def test_v1_does_not_mind(version: str) -> None:
    (only,) = found(version, 100)

    assert only.severity is Severity.NOTE
    assert "costs no cache hits" in only.reason


@pytest.mark.parametrize(
    ("version", "changes"),
    [
        ("0.6.3", {"prefix_caching": False}),
        ("0.6.3", {"prefix_caching": None}),
        ("0.6.3", {"chunked_prefill": False}),
        ("0.32", {"prefix_caching": False}),
        ("0.32", {"chunked_prefill": False}),
    ],
)
def test_it_takes_both_features(version: str, changes: dict[str, Any]) -> None:
    assert found(version, 100, **changes) == []


def test_blocks_of_16_are_assumed() -> None:
    assert found("0.6.3", 100, block_size=None)[0].advice == "a multiple of 16, such as 96"


@pytest.mark.parametrize("name", ["mamba-cache-mode", "--mamba_cache_mode"])
def test_models_with_mamba_layers(name: str) -> None:
    flags = {name: "align"}

    (note,) = found("0.32", 1000, block_size=256, flags=flags)
    assert note.severity is Severity.NOTE
    assert "cut back to block boundaries" in note.reason
    (error,) = found("0.24", 200, block_size=256, flags=flags)
    assert error.severity is Severity.ERROR
    (later,) = found("0.28", 200, block_size=256, flags=flags)
    assert later.severity is Severity.NOTE
    assert found("0.32", 1024, block_size=256, flags=flags) == []
