"""Every command in docs/deploy.md is run by some test, or is one of those that it says are not."""

from __future__ import annotations

import re
import shlex
from itertools import pairwise

import pytest
import yaml

from tests.support.deployment import ROOT, said, services

TEXT = (ROOT / "docs" / "deploy.md").read_text()
FENCED = re.findall(r"^```(\w*)\n(.*?)^```", TEXT, re.MULTILINE | re.DOTALL)
BLOCKS = [block for language, block in FENCED if not language]
COMMANDS = [
    shlex.split(line) for block in BLOCKS for line in block.replace("\\\n", " ").splitlines()
]
COMPOSED = [words for words in COMMANDS if words[:2] == ["docker", "compose"]]
# Needs a Docker engine or a cluster; what can be checked of it without is checked below.
NOT_RUN = {("docker", "compose"), ("docker", "build"), ("kubectl", "apply")}
NOT_RUN |= {("kind", "load"), ("kubectl", "port-forward")}
RUN = {
    ("sh", "deploy/compose/make-secrets"): "test_compose",
    ("kubectl", "create"): "test_kubernetes",
    ("kubectl", "kustomize"): "test_kubernetes",
    # Before the tests, by .ci/run.
    ("make", "deploy-tools"): "",
    # By what they write, which tests compare.
    ("make", "manifests"): "test_kubernetes",
    ("make", "lock"): "test_locks",
}


def test_every_command_is_run_or_said_not_to_be() -> None:
    assert {tuple(words[:2]) for words in COMMANDS} == NOT_RUN | set(RUN)
    assert "make deploy-tools" in (ROOT / ".ci" / "run").read_text()
    assert all((ROOT / "tests" / "deploy" / f"{name}.py").exists() for name in RUN.values() if name)


def test_what_commands_name_is_there() -> None:
    for words in COMMANDS:
        for option, value in pairwise(words):
            if option in {"--file", "--filename", "--kustomize", "kustomize"}:
                assert (ROOT / value).exists(), value
            if option == "--target":
                assert f" AS {value}\n" in (ROOT / "deploy" / "Dockerfile").read_text()


@pytest.mark.service
@pytest.mark.parametrize("words", COMPOSED, ids=" ".join)
def test_docker_compose_knows_the_profiles_and_options(words: list[str]) -> None:
    chosen = words[2:]
    (verb,) = {"up", "down"} & set(chosen)
    at = chosen.index(verb)
    assert said("docker-compose", *chosen[:at], "config", "--services")
    shown = said("docker-compose", verb, "--help")
    assert all(option in shown for option in chosen[at + 1 :])


def test_the_targets_it_shows_for_gpus_are_services_there_are() -> None:
    (block,) = [block for language, block in FENCED if language == "yaml"]
    entries = yaml.safe_load(block)
    for entry in entries:
        (target,) = entry["targets"]
        exporter = services()[target.partition(":")[0]]
        engine = services()[entry["labels"]["backend"]]
        gpus = [one["deploy"]["resources"]["reservations"]["devices"] for one in (exporter, engine)]
        assert gpus[0][0]["device_ids"] == gpus[1][0]["device_ids"]
    assert len(entries) == 2
