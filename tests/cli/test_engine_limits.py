"""Engine configurations and the gateway's own that stand for more than they say."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.conftest import Run

LEVELS = [f"  a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]" for n in range(1, 11)]
BOMB = "\n".join(["  a0: &a0 [lol]", *LEVELS])
FAULT = "bomb.yaml: its aliases, written out, would add more than 1000000 characters"


@pytest.mark.parametrize("section", ["flags", "env", "unknown"])
@pytest.mark.parametrize(
    "command",
    [("check", "--engine"), ("engine", "render"), ("engine", "render", "--for=config-json")],
    ids=" ".join,
)
def test_aliases_in_an_engine_configuration(
    run: Run, tmp_path: Path, command: tuple[str, ...], section: str
) -> None:
    path = tmp_path / "bomb.yaml"
    path.write_text(f"model: m\n{section}:\n{BOMB}\n")

    result = run(*command, str(path))

    assert (result.status, result.out, result.err) == (2, "", f"{FAULT}\n")


def test_aliases_in_the_file_it_extends(run: Run, tmp_path: Path) -> None:
    (tmp_path / "bomb.yaml").write_text(f"model: m\nflags:\n{BOMB}\n")
    path = tmp_path / "e.yaml"
    path.write_text("extends: bomb.yaml")

    result = run("check", "--engine", str(path), "--json")

    assert (result.status, json.loads(result.out)) == (2, {"ok": False, "faults": [FAULT]})


@pytest.mark.parametrize("section", ["models", "backends", "keys", "traces", "unknown"])
def test_aliases_in_the_gateway_s_configuration(run: Run, tmp_path: Path, section: str) -> None:
    path = tmp_path / "bomb.yaml"
    path.write_text(f"{section}:\n{BOMB}\n")

    result = run("check", str(path))

    assert (result.status, result.out, result.err) == (2, "", f"{FAULT}\n")


def test_a_flag_as_deep_as_may_be_is_rendered_in_every_form(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "deep.yaml"
    for form in ("command", "config", "config-json", "compose", "kubernetes"):
        path.write_text(f"{{model: m, flags: {{hf-overrides: {'{a: ' * 97}1{'}' * 97}}}}}")
        assert run("engine", "render", str(path), f"--for={form}").status == 0
    path.write_text(f"{{model: m, flags: {{hf-overrides: {'{a: ' * 99}1{'}' * 99}}}}}")
    result = run("engine", "render", str(path))
    assert (result.status, result.err) == (2, "deep.yaml: is nested too deeply\n")
