from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.ports import nobody


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home directory and a working directory of the test's own, and no variables of others."""
    for name in (
        "GATEWAY_URL",
        "GATEWAY_KEY",
        "CODEX_HOME",
        "CLAUDE_CONFIG_DIR",
        "XDG_CONFIG_HOME",
        "CONTINUE_GLOBAL_DIR",
    ):
        monkeypatch.delenv(name, raising=False)
    folder = tmp_path / "home"
    folder.mkdir()
    monkeypatch.setenv("HOME", str(folder))
    monkeypatch.chdir(tmp_path)
    return folder


@pytest.fixture
def closed() -> Iterator[str]:
    with nobody() as url:
        yield url
