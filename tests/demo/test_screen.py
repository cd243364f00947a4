from __future__ import annotations

import io
from pathlib import Path

import pytest
from rich.console import Console

from gateway.demo.plan import CHUNKS, Plan
from gateway.demo.screen import render
from gateway.demo.tally import Tally


def shown(plan: Plan, width: int = 80) -> str:
    console = Console(file=io.StringIO(), width=width)
    weights = dict.fromkeys(CHUNKS, 50.0)
    tally = Tally(Path("access.jsonl"), CHUNKS)
    with console.capture() as text:
        console.print(render(plan, "http://127.0.0.1:8080", tally, weights, None))
    return text.get()


def test_a_narrow_terminal_still_tells_the_arms_apart_and_the_whole_key() -> None:
    plan = Plan(1.0)
    text = shown(plan, width=50)
    assert all(f"│ {arm} " in text for arm in CHUNKS)
    key = text[text.index("Key") + 3 : text.index("Model")]
    assert "".join(key.split()) == plan.key


def test_another_shell_is_told_where_the_command_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.executable", str(tmp_path / "python"))
    monkeypatch.setenv("PATH", "/usr/bin:/bin")
    assert f"  export PATH={tmp_path}:$PATH\n" in shown(Plan(1.0), width=200)
    (tmp_path / "gateway").touch(mode=0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/bin")
    assert "export PATH" not in shown(Plan(1.0), width=200)
