"""The launch configurations that ship: a baseline, and a family that differs in the chunk alone."""

from __future__ import annotations

from pathlib import Path

import pytest

from gateway.cli.engine_file import load_engine
from gateway.vllm import EngineConfig, Severity, Version, check

FOLDER = Path(__file__).parents[2] / "deploy" / "vllm"
CHUNKS = (64, 128, 256, 512, 1024, 2048)


def member(chunk: int) -> EngineConfig:
    return load_engine(FOLDER / f"chunk-{chunk}.yaml")


def test_the_family_is_whole() -> None:
    assert {path.stem for path in FOLDER.glob("*.yaml")} == {
        "baseline",
        *(f"chunk-{chunk}" for chunk in CHUNKS),
    }


@pytest.mark.parametrize("chunk", CHUNKS)
def test_a_member_differs_from_the_baseline_in_its_chunk_alone(chunk: int) -> None:
    baseline = load_engine(FOLDER / "baseline.yaml")

    assert member(chunk) == baseline.model_copy(update={"max_num_batched_tokens": chunk})


def test_the_baseline_of_the_article() -> None:
    baseline = load_engine(FOLDER / "baseline.yaml")

    assert (
        baseline.tensor_parallel_size,
        baseline.max_model_len,
        baseline.chunked_prefill,
        baseline.max_num_batched_tokens,
        baseline.block_size,
        baseline.gpu_memory_utilization,
        baseline.prefix_caching,
        baseline.scheduling_policy,
        baseline.port,
    ) == (4, 8192, True, 512, 16, 0.9, True, "fcfs", 8000)


@pytest.mark.parametrize("version", ["0.6.3", "0.9.2", "0.32"])
@pytest.mark.parametrize("chunk", CHUNKS)
def test_only_the_smallest_is_warned_of(chunk: int, version: str) -> None:
    severities = [one.severity for one in check(member(chunk), Version.parse(version))]

    assert severities == ([Severity.WARNING] if chunk == 64 else [])


@pytest.mark.parametrize("path", sorted(FOLDER.glob("*.yaml")), ids=lambda path: path.stem)
def test_every_file_begins_with_what_it_is_for(path: Path) -> None:
    assert path.read_text().startswith("# ")
