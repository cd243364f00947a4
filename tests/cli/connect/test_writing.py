"""`gateway connect --write`: what is written where, and what of it is kept."""

from __future__ import annotations

import json
import stat
import tomllib
from collections.abc import Callable
from io import StringIO
from pathlib import Path
from typing import Any

import pytest

from gateway.cli.connect.verify import Verdict
from gateway.clients.known import CLIENTS
from gateway.clients.setup import Target
from tests.settings.samples import KEY, OTHER_KEY

Run = Callable[..., Any]


def write(run: Run, closed: str, client: str, *words: str, key: str = KEY) -> Any:
    words = ("--write", "--url", closed, "--key", key, "--model", "llama", *words)
    return run("connect", client, *words)


def test_a_change_is_shown_and_nothing_happens_without_a_yes(
    run: Run, closed: str, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = home / ".claude" / "settings.json"
    path.parent.mkdir()
    path.write_text('{"theme": "dark"}')
    for answer in ("n\n", ""):
        monkeypatch.setattr("sys.stdin", StringIO(answer))
        result = write(run, closed, "claude-code")
        assert result.status == 1
        assert '+    "ANTHROPIC_MODEL": "llama",' in result.out and KEY not in result.out
        assert path.read_text() == '{"theme": "dark"}'
    monkeypatch.setattr("sys.stdin", StringIO("y\n"))
    assert write(run, closed, "claude-code").status == 0
    content = json.loads(path.read_text())
    assert (content["theme"], content["env"]["ANTHROPIC_AUTH_TOKEN"]) == ("dark", KEY)


FILES = {
    "claude-code": [".claude/settings.json"],
    "codex": [".codex/config.toml", ".codex/auth.json"],
    "opencode": [".config/opencode/opencode.json"],
    "qwen": [".qwen/settings.json"],
    "continue": [".continue/config.yaml"],
}


@pytest.mark.parametrize("client", FILES)
def test_written_once_and_for_all(run: Run, closed: str, home: Path, client: str) -> None:
    first = write(run, closed, client, "--yes")
    assert first.status == 0, first.err
    paths = [home / name for name in FILES[client]]
    written = {path: path.read_bytes() for path in paths}
    assert all(stat.S_IMODE(path.stat().st_mode) == 0o600 for path in paths)
    assert any(KEY.encode() in text for text in written.values())
    assert KEY not in first.out and "others may read" not in first.out
    second = write(run, closed, client)  # asks nothing, for there is nothing to do
    assert second.status == 0 and "Everything stands there already" in second.out
    third = write(run, closed, client, "--yes", key=OTHER_KEY)
    assert third.status == 0 and KEY not in third.out and OTHER_KEY not in third.out
    backups = [path for path in home.rglob("*.bak-*") if path.is_file()]
    assert [KEY.encode() in path.read_bytes() for path in backups] == [True]
    everything = b"".join(path.read_bytes() for path in paths)
    assert OTHER_KEY.encode() in everything and KEY.encode() not in everything


def test_a_file_others_may_read_is_told(run: Run, closed: str, home: Path) -> None:
    path = home / ".qwen" / "settings.json"
    path.parent.mkdir()
    path.write_text("{}")
    path.chmod(0o644)
    out = write(run, closed, "qwen", "--yes").out
    assert f"others may read: chmod 600 {path}" in out
    assert stat.S_IMODE(path.stat().st_mode) == 0o644


def test_a_login_of_codex_outlives_it(run: Run, closed: str, home: Path) -> None:
    auth = home / ".codex" / "auth.json"
    auth.parent.mkdir()
    auth.write_text('{"tokens": {"access_token": "t"}}')
    out = write(run, closed, "codex", "--yes").out
    assert auth.read_text() == '{"tokens": {"access_token": "t"}}'
    assert "set it in the shell that starts Codex" in out
    config = tomllib.loads((home / ".codex" / "config.toml").read_text())
    assert config["model_providers"]["ttft-gateway"]["env_key"] == "GATEWAY_KEY"


def test_codex_home_is_heeded(
    run: Run, closed: str, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CODEX_HOME", str(home / "elsewhere"))
    answer = json.loads(write(run, closed, "codex", "--yes", "--json").out)
    assert {Path(one["path"]).parent for one in answer["written"]} == {home / "elsewhere"}
    assert not (home / ".codex").exists()


@pytest.mark.parametrize("client", ["openai-python", "anthropic-python", "curl"])
def test_who_has_no_file_is_told_what_to_set(
    run: Run, closed: str, home: Path, client: str
) -> None:
    result = write(run, closed, client)  # asks nothing, for there is nothing to do
    assert result.status == 0
    first, _, rest = result.out.partition("\n\n")
    assert first == f"{CLIENTS[client].title} has no file of its own, so there is nothing to write."
    assert rest.startswith(f"{CLIENTS[client].title}, pointed at the gateway:")
    assert KEY not in result.out
    assert not list(home.iterdir())
    answer = json.loads(write(run, closed, client, "--yes", "--json").out)
    assert answer["written"] == [] and answer["client"] == client


@pytest.mark.parametrize(("key", "status"), [(KEY, 0), (OTHER_KEY, 1)])
def test_who_has_no_file_is_tried_all_the_same(
    run: Run, closed: str, monkeypatch: pytest.MonkeyPatch, key: str, status: int
) -> None:
    """The status is that of the try."""

    def tried(profile: object, target: Target, **how: object) -> Verdict:
        return Verdict(target.key == KEY, "tried")

    monkeypatch.setattr("gateway.cli.connect.command.verify", tried)
    result = write(run, closed, "openai-python", "--verify", key=key)
    assert result.status == status
    assert "nothing to write" in result.out and "tried" in result.out + result.err


def test_comments_of_a_file_outlive_it(run: Run, closed: str, home: Path) -> None:
    """opencode reads `opencode.jsonc` last, so where that is there it is the one to edit."""
    path = home / ".config/opencode/opencode.jsonc"
    path.parent.mkdir(parents=True)
    path.write_text('{\n  // mine\n  "theme": "dark", // late\n}\n')
    result = write(run, closed, "opencode", "--yes")
    assert result.status == 0, result.err
    lines = path.read_text().splitlines()
    assert lines[:3] == ["{", "  // mine", '  "theme": "dark", // late']
    assert '  "model": "ttft-gateway/llama"' in [line.rstrip(",") for line in lines]
    names = sorted(one.name.partition(".bak-")[0] for one in path.parent.iterdir())
    assert names == ["opencode.jsonc", "opencode.jsonc"], "itself and how it was"
    assert "Everything stands there already" in write(run, closed, "opencode").out


def test_a_file_that_cannot_be_edited_stops_it_before_anything_is_written(
    run: Run, closed: str, home: Path
) -> None:
    auth = home / ".codex" / "config.toml"
    auth.parent.mkdir()
    auth.write_text("model = ")
    result = write(run, closed, "codex", "--yes")
    assert result.status == 1 and "is no TOML that can be edited safely" in result.err
    assert [path.name for path in auth.parent.iterdir()] == ["config.toml"]
