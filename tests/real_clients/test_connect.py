"""`gateway connect cline --write` with the real Cline: its own command stores the settings."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.real_clients.agents import Cline
from tests.real_clients.installing import installed, lacking
from tests.support.running import KEY


@pytest.mark.clients
@pytest.mark.timeout(180)
def test_cline_has_taken_it_over(tmp_path: Path) -> None:
    if reason := lacking():
        pytest.skip(reason)
    agent, path = Cline(), f"{installed()}:{os.environ['PATH']}"
    agent.prepare(tmp_path)
    words = ("--url", "http://127.0.0.1:9", "--key", KEY, "--model", "llama")
    done = subprocess.run(
        [sys.executable, "-m", "gateway", "connect", "cline", "--write", "--yes", *words],
        env={"PATH": path, "HOME": str(tmp_path), "TERM": "dumb"} | agent.quiet,
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=150,
    )
    assert done.returncode == 0, done.stderr
    assert "Provider configured" in done.stdout and KEY not in done.stdout + done.stderr
    stored = json.loads((tmp_path / ".cline/data/settings/providers.json").read_text())
    settings = stored["providers"]["openai-compatible"]["settings"]
    assert settings["apiKey"] == KEY
    assert (settings["model"], settings["baseUrl"]) == ("llama", "http://127.0.0.1:9/v1")
