"""What is deployed in containers: the compose file, and the programs that judge it."""

from __future__ import annotations

import secrets
import shutil
import subprocess
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).parents[2]
TOOLS = ROOT / ".venv" / "deploy" / "bin"
COMPOSE = ROOT / "docker-compose.yml"
CONFIGURATIONS = ROOT / "deploy" / "compose" / "config"

Service = dict[str, Any]


def tool(name: str) -> str:
    """The path of one of the programs of `make deploy-tools`; skips where it is missing."""
    pinned = TOOLS / name
    found = str(pinned) if pinned.exists() else shutil.which(name)
    if found is None:
        pytest.skip(f"{name} is missing: make deploy-tools")
    return found


def said(name: str, *arguments: str, cwd: Path = ROOT) -> str:
    """What such a program prints; its complaints fail the test."""
    done = subprocess.run(
        [tool(name), *arguments], capture_output=True, text=True, cwd=cwd, timeout=50
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@cache
def document() -> dict[str, Any]:
    """The compose file, its anchors resolved."""
    loaded: dict[str, Any] = yaml.safe_load(COMPOSE.read_text())
    return loaded


def services() -> dict[str, Service]:
    found: dict[str, Service] = document()["services"]
    return found


def option(command: list[str], name: str) -> str:
    """What follows an option of a command line."""
    return command[command.index(name) + 1]


def mounts(service: Service) -> dict[str, str]:
    """By the path in the container, what is mounted there: a path of the project, or a volume."""
    parts = (volume.split(":") for volume in service.get("volumes", []))
    return {part[1]: part[0] for part in parts}


def images(name: str = "deploy/Dockerfile") -> list[tuple[str, str]]:
    """A Dockerfile as instructions and their arguments, lines that go on joined."""
    text = (ROOT / name).read_text().replace("\\\n", " ")
    lines = [line.split(maxsplit=1) for line in text.splitlines()]
    return [(line[0], " ".join(line[1].split())) for line in lines if line and line[0] != "#"]


def write_secrets(folder: Path) -> dict[str, str]:
    """Files as `deploy/compose/make-secrets` makes them, and what is in them, by name."""
    made = {name: secrets.token_hex(32) for name in document()["secrets"]}
    for name, value in made.items():
        (folder / name).write_text(value)
    return made
