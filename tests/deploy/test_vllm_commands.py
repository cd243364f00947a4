"""The vLLM servers of compose and Kubernetes: their commands in the version of their image."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import pytest
import yaml

from gateway.vllm import EngineConfig, Severity, Version, check, flag
from gateway.vllm.flags import Fate, Kind
from tests.support.deployment import ROOT, services
from tests.support.kubernetes import container, of_kind

CHUNK = "max-num-batched-tokens"


def composed() -> dict[str, tuple[list[str], str]]:
    """Command and image by arm's chunk."""
    found = [one for one in services().values() if "vllm-openai" in str(one.get("image"))]
    serving = [one for one in found if CHUNK in " ".join(one.get("command", []))]
    return {flags(one["command"])[CHUNK]: (one["command"], one["image"]) for one in serving}


def deployed() -> dict[str, tuple[list[str], str]]:
    found = [container(one) for one in of_kind("vllm", "Deployment").values()]
    serving = [one for one in found if one["name"] == "vllm"]
    return {flags(one["args"])[CHUNK]: (one["args"], one["image"]) for one in serving}


def flags(command: Sequence[str]) -> dict[str, str]:
    """The flags with their values; empty for those without one."""
    found: dict[str, str] = {}
    for word, after in zip(command, [*command[1:], "--"], strict=True):
        if word.startswith("--"):
            found[word.removeprefix("--")] = "" if after.startswith("--") else after
    return found


def release(image: str) -> Version:
    match = re.fullmatch(r"vllm/vllm-openai:v([\d.]+)", image)
    assert match, image
    return Version.parse(match[1])


@pytest.fixture(params=[composed, deployed], ids=["compose", "kubernetes"])
def arms(request: pytest.FixtureRequest) -> dict[str, tuple[list[str], str]]:
    found: dict[str, tuple[list[str], str]] = request.param()
    return found


def test_both_arms_are_there(arms: dict[str, Any]) -> None:
    assert set(arms) == {"512", "2048"}


def test_every_flag_is_one_of_the_images_version(arms: dict[str, tuple[list[str], str]]) -> None:
    for command, image in arms.values():
        for name, value in flags(command).items():
            known = flag(name, release(image))
            assert (known.fate, known.name) == (Fate.PRESENT, name)
            assert bool(value) == (known.kind is Kind.VALUE), name


def test_vllm_would_take_the_configuration(arms: dict[str, tuple[list[str], str]]) -> None:
    for command, image in arms.values():
        told = flags(command)
        config = EngineConfig(
            model=command[0],
            max_num_batched_tokens=int(told[CHUNK]),
            max_num_seqs=int(told["max-num-seqs"]),
        )
        severities = {one.severity for one in check(config, release(image))}
        assert not severities & {Severity.ERROR, Severity.WARNING}


def test_the_arms_differ_in_the_chunk_alone(arms: dict[str, tuple[list[str], str]]) -> None:
    rest = [(command[0], flags(command) | {CHUNK: ""}, image) for command, image in arms.values()]
    assert rest[0] == rest[1]


def test_compose_declares_what_it_starts() -> None:
    text = (ROOT / "deploy/compose/config/gpu.yaml").read_text()
    assert declared(text) == started(composed())


def test_kubernetes_declares_what_it_starts() -> None:
    text = of_kind("vllm", "ConfigMap")["gateway-configuration"]["data"]["gateway.yaml"]
    assert declared(text) == started(deployed())


def declared(text: str) -> set[tuple[str, str]]:
    """Chunk and places of each engine, as the gateway's configuration says."""
    engines = [one["engine"] for one in yaml.safe_load(text)["backends"].values()]
    return {(str(one["max_num_batched_tokens"]), str(one["max_num_seqs"])) for one in engines}


def started(arms: dict[str, tuple[list[str], str]]) -> set[tuple[str, str]]:
    return {(chunk, flags(command)["max-num-seqs"]) for chunk, (command, _) in arms.items()}
