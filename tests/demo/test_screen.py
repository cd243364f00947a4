from __future__ import annotations

import io
from pathlib import Path

import pytest
from rich.console import Console

from gateway.demo.plan import CHUNKS, Plan
from gateway.demo.screen import introduce, render
from gateway.demo.tally import Tally

URL = "http://127.0.0.1:8080"


def test_a_narrow_terminal_still_tells_the_arms_apart() -> None:
    console = Console(file=io.StringIO(), width=50)
    weights = dict.fromkeys(CHUNKS, 50.0)
    with console.capture() as text:
        console.print(render(Plan(1.0), Tally(Path("access.jsonl"), CHUNKS), weights))
    assert all(f"│ {arm} " in text.get() for arm in CHUNKS)


def test_what_is_to_be_copied_stands_in_one_line_each() -> None:
    plan = Plan(1.0)
    lines = introduce(plan, URL, "http://127.0.0.1:8090").splitlines()
    assert f"Key       {plan.key}" in lines
    assert f"  export GATEWAY_ADMIN_KEY={plan.admin_key}" in lines
    assert any("http://127.0.0.1:8090 in a browser" in line for line in lines)


def test_another_shell_is_told_where_the_command_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.executable", str(tmp_path / "python"))
    monkeypatch.setenv("PATH", "/usr/bin:/bin")
    assert f"  export PATH={tmp_path}:$PATH\n" in introduce(Plan(1.0), URL, None)
    (tmp_path / "gateway").touch(mode=0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/bin")
    assert "export PATH" not in introduce(Plan(1.0), URL, None)
