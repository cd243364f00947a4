"""Debian's Prometheus: its command-line tool, what is deployed for it, and a running one."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

DEPLOYED = Path(__file__).parents[2] / "deploy" / "prometheus"


def program(name: str) -> str:
    """The path of `prometheus` or `promtool`; skips where it is missing."""
    found = shutil.which(name)
    if found is None:
        pytest.skip(f"{name} is missing: apt-get install prometheus")
    return found


def promtool(*arguments: str, stdin: str | None = None) -> str:
    """What promtool says; its complaints fail the test."""
    done = subprocess.run(
        [program("promtool"), *arguments], input=stdin, capture_output=True, text=True, timeout=50
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout + done.stderr


def rules() -> list[dict[str, Any]]:
    """Every recording and alerting rule, in the order of evaluation within a file."""
    files = sorted((DEPLOYED / "rules").glob("*.yml"))
    groups = [group for file in files for group in yaml.safe_load(file.read_text())["groups"]]
    return [rule for group in groups for rule in group["rules"]]


def deployed(folder: Path, key: str = "sk-metrics") -> Path:
    """A copy of what is deployed, as an operator completes it with the gateway's metrics key."""
    copy = folder / "prometheus"
    shutil.copytree(DEPLOYED, copy, ignore=shutil.ignore_patterns("tests", "secrets"))
    (copy / "secrets").mkdir()
    (copy / "secrets" / "metrics_key").write_text(key)
    return copy
