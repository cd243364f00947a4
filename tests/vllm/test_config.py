"""What an engine configuration may say."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import ValidationError

from gateway.vllm import EngineConfig, Version


def refusal(**data: Any) -> str:
    with pytest.raises(ValidationError) as caught:
        EngineConfig.model_validate({"model": "m"} | data)
    (error,) = caught.value.errors()
    return f"{'.'.join(map(str, error['loc']))}: {error['msg']}"


@pytest.mark.parametrize(
    ("data", "sentence"),
    [
        ({"engine_version": 0.1}, 'engine_version: must be in quotes, such as "0.10": YAML takes '),
        ({"engine_version": "new"}, "engine_version: must be a version of vLLM, such as 0.32"),
        ({"engine_version": "0.4"}, "engine_version: is older than 0.6, the oldest release"),
        ({"max_num_batched_tokens": 0}, "max_num_batched_tokens: must be a whole number, at lea"),
        ({"max_num_batched_tokens": True}, "max_num_batched_tokens: must be a whole number"),
        ({"gpu_memory_utilization": 90}, "gpu_memory_utilization: must be above 0 and at most 1"),
        ({"port": 0}, "port: must be a port, from 1 to 65535"),
        ({"scheduling_policy": "lifo"}, "scheduling_policy: Input should be 'fcfs' or 'priority'"),
        ({"name": "My Engine"}, "name: must be a name as Kubernetes takes it"),
        ({"env": {"A-B": "x"}}, "env.A-B.[key]: must be the name of an environment variable"),
        ({"env": {"A": "x\ny"}}, "env.A: must be one line of text"),
        ({"flags": {"-x": 1}}, "flags.-x.[key]: must be the name of a flag of vllm serve"),
        ({"flags": {"--block-size": 16}}, "flags: --block-size has a setting of its own: use blo"),
        ({"flags": {"no-enable-prefix-caching": True}}, "flags: no-enable-prefix-caching has a "),
        ({"flags": {"model": "m"}}, "flags: model has a setting of its own: use model"),
        ({"chunk_size": 512}, "chunk_size: Extra inputs are not permitted"),
        ({"model": "a\tb"}, "model: must be one line of text"),
    ],
)
def test_refusals_name_the_place_and_what_is_allowed(data: dict[str, Any], sentence: str) -> None:
    assert refusal(**data).startswith(sentence)


def test_a_wrong_name_of_a_flag_beside_the_setting_it_means() -> None:
    flags = {"scheduler-policy": "fcfs"}

    assert EngineConfig(model="m", flags=dict(flags)).flags == flags
    assert refusal(flags=flags, scheduling_policy="fcfs") == (
        "flags: scheduler-policy has a setting of its own: use scheduling_policy"
    )


def test_null_is_the_default() -> None:
    assert EngineConfig.model_validate({"model": "m", "port": None, "flags": None}) == (
        EngineConfig(model="m")
    )


@pytest.mark.parametrize(
    ("version", "context", "chunks"),
    [
        ("0.6.3", 8192, False),
        ("0.6.3", 32768, False),
        ("0.6.3", 32769, True),
        ("0.6.3", None, True),
        ("0.8", 8192, True),
    ],
)
def test_whether_prompts_are_chunked_by_default(
    version: str, context: int | None, chunks: bool
) -> None:
    config = EngineConfig(model="m", max_model_len=context)

    assert config.chunks_prefill(Version.parse(version)) is chunks
