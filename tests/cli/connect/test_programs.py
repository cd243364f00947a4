"""`gateway connect cline --write`: Cline's own command is what stores the settings."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Callable
from io import StringIO
from pathlib import Path
from typing import Any

import pytest

from gateway.cli.connect import programs
from gateway.clients.cline import CLINE
from gateway.clients.setup import Target
from gateway.errors import GatewayError
from tests.settings.samples import KEY

Run = Callable[..., Any]

WORDS = ["auth", "openai-compatible", "-k", KEY, "-m", "llama", "-b", "http://127.0.0.1:9/v1"]
SHOWN = f"-k {KEY[:4]}… ({len(KEY)} characters) -m llama -b http://127.0.0.1:9/v1"


@pytest.fixture
def fake_cline(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], Path]:
    """Puts a fake `cline` on the PATH, which notes its arguments and then does as told."""

    def put(then: str = "printf '\\033[32mProvider configured\\033[0m'") -> Path:
        folder, noted = tmp_path / "bin", tmp_path / "arguments"
        folder.mkdir()
        program = folder / "cline"
        program.write_text(f'#!/bin/sh\nprintf "%s\\n" "$@" > {noted}\n{then}\n')
        program.chmod(0o755)
        monkeypatch.setenv("PATH", f"{folder}:/usr/bin:/bin")
        return noted

    return put


@pytest.fixture(autouse=True)
def no_cline(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """None of the machine's own."""
    monkeypatch.setenv("PATH", str(tmp_path / "empty"))


def write(run: Run, *words: str) -> Any:
    words = ("--url", "http://127.0.0.1:9", "--key", KEY, "--model", "llama", *words)
    return run("connect", "cline", "--write", *words)


def test_it_is_shown_agreed_to_and_run(
    run: Run, fake_cline: Callable[..., Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    noted = fake_cline()
    monkeypatch.setattr("sys.stdin", StringIO("n\n"))
    refused = write(run)
    assert refused.status == 1 and not noted.exists()
    assert f"cline auth openai-compatible {SHOWN}\n" in refused.out
    assert "may see it in the list of processes" in refused.out
    monkeypatch.setattr("sys.stdin", StringIO("y\n"))
    agreed = write(run)
    assert agreed.status == 0, agreed.err
    assert noted.read_text().splitlines() == WORDS
    assert "Provider configured\n" in agreed.out and "\x1b" not in agreed.out
    assert KEY not in refused.out + agreed.out


def test_for_programs(run: Run, fake_cline: Callable[..., Path]) -> None:
    noted = fake_cline()
    result = write(run, "--yes", "--json")
    answer = json.loads(result.out)
    assert (answer["written"], answer["ran"]) == ([], f"cline auth openai-compatible {SHOWN}")
    assert noted.read_text().splitlines() == WORDS


def test_where_it_is_not_installed(run: Run) -> None:
    """Nothing was set, so the status is not that of success; how to go on is told."""
    result = write(run, "--yes")
    assert result.status == 1
    assert "cline is not on the PATH here, so nothing was set" in result.out
    assert "npm install -g cline" in result.out and "In the editor: " in result.out
    assert json.loads(write(run, "--yes", "--json").out)["ran"] is None


def test_one_that_fails_is_told_without_the_key(run: Run, fake_cline: Callable[..., Path]) -> None:
    fake_cline('echo "no store for $4"; exit 3')
    result = write(run, "--yes")
    assert result.status == 1
    shown = f"no store for {KEY[:4]}… ({len(KEY)} characters)"
    assert result.err.strip() == f"cline failed with status 3: {shown}"


def test_one_that_hangs_is_given_up_without_a_word_of_the_key(
    fake_cline: Callable[..., Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    fake_cline("exec sleep 30")
    monkeypatch.setattr(programs, "PATIENCE", 0.3)
    setup = CLINE.setup(Target("http://127.0.0.1:9", KEY, "llama"), lambda file: None)
    with pytest.raises(GatewayError, match=r"did not end within 0\.3 s") as caught:
        programs.run(setup, KEY, lambda text: None, yes=True, env=os.environ)
    assert not isinstance(caught.value.__cause__, subprocess.TimeoutExpired)
