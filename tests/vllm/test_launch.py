"""From settings to the flags of a version."""

from __future__ import annotations

from typing import Any

import pytest

from gateway.vllm import EngineConfig, Launch, Version, launch


def launched(version: str = "0.32", **settings: Any) -> Launch:
    return launch(EngineConfig.model_validate({"model": "m"} | settings), Version.parse(version))


def words(version: str = "0.32", **settings: Any) -> list[str]:
    """The command line without its port, which is always there."""
    found = launched(version, **settings)
    return [
        word for one in found.arguments if one.name != "port" for word in one.words(joined=True)
    ]


@pytest.mark.parametrize(
    ("version", "wish", "expected"),
    [
        ("0.32", True, ["--enable-prefix-caching"]),
        ("0.32", False, ["--no-enable-prefix-caching"]),
        ("0.32", None, []),
        ("0.6.3", True, ["--enable-prefix-caching"]),
        ("0.6.3", False, []),
    ],
)
def test_prefix_caching(version: str, wish: bool | None, expected: list[str]) -> None:
    assert words(version, prefix_caching=wish) == expected


@pytest.mark.parametrize(
    ("version", "expected"),
    [("0.7.3", "--enable-chunked-prefill=False"), ("0.8.5", "--no-enable-chunked-prefill")],
)
def test_no_chunked_prefill(version: str, expected: str) -> None:
    assert words(version, chunked_prefill=False) == [expected]


def test_parsers_bring_the_switches_they_need() -> None:
    parsers = {"tool_call_parser": "hermes", "reasoning_parser": "qwen3"}
    new = ["--enable-auto-tool-choice", "--tool-call-parser=hermes", "--reasoning-parser=qwen3"]

    assert words("0.32", **parsers) == new
    assert words("0.8.5", **parsers) == [*new[:2], "--enable-reasoning", new[2]]


def test_what_a_version_does_not_have_is_left_out_with_a_word_why() -> None:
    found = launched(flags={"swap-space": 4, "max-num-batch-tokens": 1, "x-y-z": True})

    assert [one.name for one in found.arguments] == ["port"]
    assert [str(one) for one in found.remarks] == [
        "--swap-space is left out: removed after 0.16.0 (preempted requests are computed anew, "
        "not swapped out)",
        "--max-num-batch-tokens is left out: no flag of vLLM 0.32, did you mean "
        "--max-num-batched-tokens?",
        "--x-y-z is left out: no flag of vLLM 0.32",
    ]
    assert str(launched("0.8", data_parallel_size=2).remarks[0]) == (
        "--data-parallel-size is left out: not in vLLM 0.8, first seen in 0.8.5"
    )


def test_a_renamed_flag_is_renamed_with_a_word() -> None:
    found = launched(flags={"scheduler_policy": "priority"})

    assert [(one.name, one.value) for one in found.arguments[1:]] == [
        ("scheduling-policy", "priority")
    ]
    assert [str(one) for one in found.remarks] == [
        "--scheduler-policy is written --scheduling-policy"
    ]


def test_unknown_flags_of_releases_newer_than_the_newest_known_are_believed() -> None:
    assert words("0.40", flags={"brand-new": 3, "switch-new": True}) == [
        "--brand-new=3",
        "--switch-new",
    ]


@pytest.mark.parametrize(
    ("flags", "expected"),
    [
        ({"no-enforce-eager": True}, ["--no-enforce-eager"]),
        ({"--no_enforce_eager": False}, ["--enforce-eager"]),
        ({"kv-events-config": {"a": 1}}, ['--kv-events-config={"a": 1}']),
        ({"allowed-origins": ["*"]}, ['--allowed-origins=["*"]']),
        ({"lora-modules": ["a=b", "c=d"]}, ["--lora-modules", "a=b", "c=d"]),
        ({"seed": -1}, ["--seed=-1"]),
        ({"disable-log-stats": False}, []),
    ],
)
def test_forms_of_values(flags: dict[str, Any], expected: list[str]) -> None:
    assert words(flags=flags) == expected


def test_gpus_are_those_of_the_parallelism_the_version_has() -> None:
    sizes = {"tensor_parallel_size": 4, "pipeline_parallel_size": 2, "data_parallel_size": 3}

    assert launched("0.32", **sizes).gpus == 24
    assert launched("0.7.3", **sizes).gpus == 8
    assert launched().gpus == 1
