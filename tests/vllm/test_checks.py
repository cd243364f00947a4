"""Findings, each with the version it holds for."""

from __future__ import annotations

from typing import Any

import pytest

from gateway.vllm import EngineConfig, Finding, Severity, Version, check

FINE = {
    "model": "m",
    "max_num_batched_tokens": 512,
    "max_num_seqs": 64,
    "max_model_len": 8192,
    "chunked_prefill": True,
    "prefix_caching": True,
    "block_size": 16,
    "gpu_memory_utilization": 0.9,
}
RELEASES = ("0.6.3", "0.7.3", "0.8.5", "0.10.2", "0.16", "0.32")


def found(version: str = "0.32", **changes: Any) -> list[Finding]:
    return check(EngineConfig.model_validate(FINE | changes), Version.parse(version))


def told(version: str = "0.32", **changes: Any) -> list[tuple[str, Severity, str]]:
    return [(one.field, one.severity, one.reason) for one in found(version, **changes)]


@pytest.mark.parametrize("version", RELEASES)
def test_the_article_s_baseline_is_fine_in_every_version(version: str) -> None:
    assert found(version) == []


@pytest.mark.parametrize("version", RELEASES)
def test_a_chunk_below_the_sequences(version: str) -> None:
    assert told(version, max_num_batched_tokens=256, max_num_seqs=512) == [
        (
            "max_num_batched_tokens",
            Severity.ERROR,
            "256 is below max_num_seqs (512), so vLLM does not start",
        )
    ]


@pytest.mark.parametrize(
    ("version", "chunk", "severities"),
    [
        ("0.6.3", 128, [Severity.ERROR]),
        ("0.6.3", 256, []),
        ("0.9.2", 128, [Severity.ERROR]),
        ("0.10.2", 128, [Severity.NOTE]),
        ("0.32", 512, [Severity.NOTE]),
        ("0.32", 1024, []),
    ],
)
def test_sequences_that_are_left_to_vllm(
    version: str, chunk: int, severities: list[Severity]
) -> None:
    findings = found(version, max_num_batched_tokens=chunk, max_num_seqs=None)

    assert [(one.field, one.severity) for one in findings] == [
        ("max_num_seqs", severity) for severity in severities
    ]


def test_what_is_merely_not_known_of_an_engine_is_no_finding() -> None:
    config = EngineConfig(model="m", max_num_batched_tokens=512)

    assert [one.field for one in check(config)] == ["max_num_seqs"]
    assert check(config, complete=False) == []


@pytest.mark.parametrize(("chunk", "steps"), [(64, 32), (112, 18)])
def test_a_small_chunk(chunk: int, steps: int) -> None:
    assert told(max_num_batched_tokens=chunk) == [
        (
            "max_num_batched_tokens",
            Severity.WARNING,
            f"{chunk} is below 128, so a prompt of 2000 tokens takes at least {steps} steps to its "
            "first token",
        )
    ]


@pytest.mark.parametrize(("chunk", "warned"), [(8191, False), (8192, True), (16384, True)])
def test_a_chunk_that_chunks_nothing(chunk: int, warned: bool) -> None:
    # Blocks of one token, so that no chunk ends amid one.
    findings = found(max_num_batched_tokens=chunk, block_size=1)

    assert [one.severity for one in findings] == [Severity.WARNING] * warned
    assert all("no prompt is ever cut" in one.reason for one in findings)


def test_a_context_that_is_not_stated_makes_no_chunk_too_large() -> None:
    assert told(max_num_batched_tokens=16384, max_model_len=None) == []


@pytest.mark.parametrize("version", ["0.6.3", "0.32"])
def test_no_chunked_prefill_with_less_than_the_context(version: str) -> None:
    (first,) = found(version, chunked_prefill=False)

    assert first.severity is Severity.ERROR
    assert first.reason.startswith("512 is below max_model_len (8192) while chunked prefill is off")


def test_v0_chunks_short_contexts_only_if_asked_to() -> None:
    (first,) = found("0.7.3", chunked_prefill=None)

    assert (first.severity, first.versions) == (Severity.ERROR, "V0, where it is off by default")
    assert found("0.7.3", chunked_prefill=None, max_model_len=65536) == []
    assert found("0.8.5", chunked_prefill=None) == []


def test_no_chunked_prefill_at_all_is_not_supported_by_v1() -> None:
    changes = {"chunked_prefill": False, "max_num_batched_tokens": 8192}

    assert [one.field for one in found("0.32", **changes)] == ["chunked_prefill"]
    assert found("0.6.3", **changes) == []


def test_a_threshold_above_the_context() -> None:
    assert [one.severity for one in found(long_prefill_token_threshold=9000)] == [Severity.ERROR]
    assert found("0.20.2", long_prefill_token_threshold=9000) == []
    assert found(long_prefill_token_threshold=0) == []


@pytest.mark.parametrize(("share", "warned"), [(0.95, False), (0.96, True), (1.0, True)])
def test_memory_without_head_room(share: float, warned: bool) -> None:
    fields = [one.field for one in found(gpu_memory_utilization=share)]

    assert fields == ["gpu_memory_utilization"] * warned


def test_prefix_caching_that_is_off() -> None:
    assert [one.field for one in found(prefix_caching=False)] == ["prefix_caching"]
    assert [one.field for one in found("0.7.3", prefix_caching=None)] == ["prefix_caching"]
    assert found(prefix_caching=None) == []


@pytest.mark.parametrize(
    ("shared", "block", "warned"), [(15, 16, True), (16, 16, False), (100, 128, True)]
)
def test_a_shared_prompt_shorter_than_a_block(shared: int, block: int, warned: bool) -> None:
    fields = [one.field for one in found(shared_prompt_tokens=shared, block_size=block)]

    assert fields == ["shared_prompt_tokens"] * warned


def test_flags_the_version_does_not_have() -> None:
    flags = {"swap-space": 4, "max_num_batch_tokens": 1, "kv-cache-dtype": "fp8", "x-y-z": 1}

    assert [(one.field, one.severity, one.advice) for one in found(flags=flags)] == [
        ("flags.swap-space", Severity.ERROR, "leave it out"),
        ("flags.max_num_batch_tokens", Severity.ERROR, "--max-num-batched-tokens"),
        ("flags.x-y-z", Severity.ERROR, "leave it out"),
    ]
    assert [one.field for one in found("0.9", flags=flags)] == [
        "flags.max_num_batch_tokens",
        "flags.x-y-z",
    ]


def test_a_flag_by_the_wrong_name_is_a_warning() -> None:
    (only,) = found(flags={"scheduler-policy": "fcfs"})

    assert only.severity is Severity.WARNING
    assert only.reason == "is no flag of any version, but scheduling-policy is"


def test_a_flag_that_a_newer_version_may_have() -> None:
    assert told("0.33", flags={"x-y-z": 1})[0] == (
        "flags.x-y-z",
        Severity.WARNING,
        "is no flag of 0.32, the newest this gateway knows: 0.33 may have it",
    )
    # What was there and has gone does not come back.
    assert told("0.33", flags={"swap-space": 4})[0][:2] == ("flags.swap-space", Severity.ERROR)


def test_a_version_nobody_knows_yet() -> None:
    assert [one.field for one in found("0.33")] == ["engine_version"]
    assert found("0.32.1") == []


def test_errors_come_first() -> None:
    severities = [
        one.severity
        for one in found(
            max_num_batched_tokens=50,
            gpu_memory_utilization=0.99,
            flags={"swap-space": 4},
        )
    ]

    assert severities == sorted(severities, key=list(Severity).index)
    assert {*severities} == {*Severity}


def test_every_finding_says_what_to_try_and_where_it_stands() -> None:
    everything = [
        *found(max_num_batched_tokens=50, gpu_memory_utilization=0.99, flags={"x": 1}),
        *found("0.6.3", max_num_batched_tokens=100),
        *found(chunked_prefill=False, prefix_caching=False),
    ]

    assert all(one.versions and one.advice and one.source for one in everything)


def test_the_configuration_s_own_version_counts() -> None:
    config = EngineConfig.model_validate(
        FINE | {"max_num_batched_tokens": 1000, "engine_version": "0.6.3"}
    )

    assert [one.severity for one in check(config)] == [Severity.ERROR]
    assert [one.severity for one in check(config, Version.parse("0.32"))] == [Severity.NOTE]
