"""deploy/Dockerfile: linted, and its own steps run, as far as that goes without a Docker engine."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from fnmatch import fnmatch
from pathlib import Path

import pytest

from gateway import __version__
from tests.support.deployment import ROOT, images, said, services

STEPS = images()
INSTALLED = "/opt/gateway"


def _stages() -> dict[str, list[tuple[str, str]]]:
    """By name, a stage's instructions; a stage that goes on from another has the other's, too."""
    found: dict[str, list[tuple[str, str]]] = {}
    name = ""
    for kind, words in STEPS:
        if kind == "FROM":
            base, _, name = words.partition(" AS ")
            found[name] = list(found.get(base, []))
        elif name:
            found[name].append((kind, words))
    return found


def _copies() -> Iterator[str]:
    """Every path of the project that goes into an image."""
    for kind, words in STEPS:
        if kind == "COPY" and not words.startswith("--from="):
            yield from words.split()[:-1]


@pytest.mark.service
def test_the_linter_has_no_complaint() -> None:
    said("hadolint", str(ROOT / "deploy" / "Dockerfile"))


def test_what_is_copied_is_there_and_reaches_the_build() -> None:
    """`.dockerignore` leaves everything out, and lets in what it names."""
    lines = (ROOT / ".dockerignore").read_text().splitlines()
    assert "*" in lines
    let_in = [line[1:] for line in lines if line.startswith("!")]
    for path in _copies():
        assert (ROOT / path).exists(), path
        assert any(fnmatch(path, name) or path.startswith(f"{name}/") for name in let_in), path
    assert all(any(path.startswith(name) for path in _copies()) for name in let_in)


def test_every_base_is_one_version_of_pythons_slim_image() -> None:
    (version,) = [words.partition("=")[2] for kind, words in STEPS if kind == "ARG"]
    assert re.fullmatch(r"3\.11\.\d+-slim-bookworm", version)
    bases = [words.partition(" AS ")[0] for kind, words in STEPS if kind == "FROM"]
    outside = {base for base in bases if base not in _stages()}
    assert outside == {"python:${PYTHON}"}


@pytest.mark.parametrize("name", ["gateway", "console"])
def test_an_image_is_nobody_in_particular_and_says_whether_it_is_well(name: str) -> None:
    last = dict(_stages()[name])
    assert last["USER"] == services()[name]["user"] == "10001:10001"
    assert last["ENTRYPOINT"] == '["gateway"]'
    assert "/opt/healthcheck.py" in last["HEALTHCHECK"]
    (_, port) = next((kind, words) for kind, words in _stages()[name] if kind == "EXPOSE")
    assert services()[name]["ports"][0].endswith(f":{port}")
    assert [words for kind, words in STEPS if kind == "FROM"][-1] == "runtime AS gateway"


def test_compose_builds_the_targets_there_are() -> None:
    targets = {service["build"]["target"] for service in services().values() if "build" in service}
    assert targets == {"gateway", "console"} <= set(_stages())


class Build:
    """Runs a stage's steps in a folder, with a fresh environment for Python's image.

    Args:
        folder: where the stages' folders are; `/opt/gateway` of each lies there, too.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        subprocess.run([sys.executable, "-m", "venv", str(folder / "image")], check=True)

    def stage(self, name: str) -> Path:
        """Its /opt/gateway."""
        place = self._folder / name
        place.mkdir()
        for kind, words in _stages()[name]:
            if kind == "COPY":
                self._copy(words.split(), place)
            elif kind == "RUN":
                self._run(words, place)
        return self._folder / f"{name}-installed"

    def _copy(self, words: list[str], place: Path) -> None:
        source = ROOT
        if words[0].startswith("--from="):
            source = self._folder / words.pop(0).removeprefix("--from=")
        *paths, target = words
        for path in paths:
            found = source / path.removeprefix("/src/")
            if found.is_dir():
                ignored = shutil.ignore_patterns("__pycache__")
                shutil.copytree(found, place / target, ignore=ignored)
            else:
                shutil.copy(found, place / target)

    def _run(self, words: str, place: Path) -> None:
        script = words.replace(INSTALLED, f"{place}-installed")
        environment = os.environ | {"PATH": f"{self._folder / 'image' / 'bin'}:/usr/bin:/bin"}
        done = subprocess.run(
            ["sh", "-c", script], cwd=place, env=environment, capture_output=True, text=True
        )
        assert done.returncode == 0, f"{words}\n{done.stdout}\n{done.stderr}"


@pytest.mark.timeout(300)
def test_its_steps_install_a_gateway_that_runs(tmp_path: Path) -> None:
    """From the wheel and the locked packages alone, in an environment without pip."""
    build = Build(tmp_path)
    build.stage("wheel")
    installed = build.stage("gateway-installed") / "bin"
    shown = subprocess.run(
        [installed / "gateway", "--version"], capture_output=True, text=True, cwd=tmp_path
    )
    assert shown.stdout.strip() == f"gateway {__version__}"
    # What its command needs: every import of the server, with nothing of the tests' environment.
    for command in ("serve", "sim"):
        done = subprocess.run([installed / "gateway", command, "--help"], capture_output=True)
        assert done.returncode == 0, done.stderr
    assert not (installed / "pip").exists()
    assert not (installed / "pytest").exists()
