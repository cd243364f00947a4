"""`gateway connect`: which gateway, key and model; what is printed; what is written where."""

from __future__ import annotations

import json
import shlex
import stat
import subprocess
import tomllib
from collections.abc import Callable, Iterator
from io import StringIO
from pathlib import Path
from typing import Any

import pytest

from gateway.clients.known import CLIENTS
from tests.settings.samples import KEY, OTHER_KEY, changed
from tests.support.ports import nobody

Run = Callable[..., Any]


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


def configured(tmp_path: Path, *changes: tuple[str, Any], name: str = "gateway.yaml") -> Path:
    path = tmp_path / name
    path.write_text(json.dumps(changed(*changes)))
    return path


# Which gateway, key and model


def test_everything_from_the_usual_file(run: Run, tmp_path: Path, closed: str) -> None:
    port = int(closed.rpartition(":")[2])
    configured(tmp_path, ("server", {"host": "0.0.0.0", "port": port}))
    answer = json.loads(run("connect", "codex", "--json", "--show-key").out)
    assert answer["base_url"] == f"{closed}/v1"
    assert (answer["key"], answer["model"]) == (KEY, "llama-3-70b")
    assert "did not confirm model llama-3-70b" in answer["remarks"][0]


def test_options_win_over_variables_and_those_over_the_file(
    run: Run, tmp_path: Path, closed: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    configured(tmp_path)
    monkeypatch.setenv("GATEWAY_URL", closed)
    monkeypatch.setenv("GATEWAY_KEY", OTHER_KEY)
    by_variables = json.loads(run("connect", "curl", "--json", "--show-key", "--model", "x").out)
    assert (by_variables["base_url"], by_variables["key"]) == (f"{closed}/v1", OTHER_KEY)
    words = ("--url", f"{closed}/else", "--key", f"{KEY}0", "--model", "x")
    answer = json.loads(run("connect", "curl", "--json", "--show-key", *words).out)
    assert (answer["base_url"], answer["key"]) == (f"{closed}/else/v1", f"{KEY}0")


def test_a_file_elsewhere_and_its_first_key_in_plain(run: Run, tmp_path: Path, closed: str) -> None:
    keys = [{"name": "hashed", "key_sha256": "a" * 64}, {"name": "dev", "key": OTHER_KEY}]
    path = configured(tmp_path, ("keys", keys), name="other.yaml")
    result = run("connect", "curl", "-c", str(path), "--url", closed, "--show-key")
    assert f"export GATEWAY_KEY={OTHER_KEY}" in result.out


@pytest.mark.parametrize(
    "pasted", ["{}/", "{}/v1", "{}/v1/", "{}/v1/v1", "{}/v1/chat/completions", "{}/v1/messages"]
)
def test_addresses_as_people_paste_them(run: Run, closed: str, pasted: str) -> None:
    words = ("--url", pasted.format(closed), "--key", KEY, "--model", "m", "--json")
    assert json.loads(run("connect", "curl", *words).out)["base_url"] == f"{closed}/v1"
    assert json.loads(run("connect", "claude-code", *words).out)["base_url"] == closed


@pytest.mark.parametrize(
    ("words", "status", "said"),
    [
        (("--model", "m"), 2, "set GATEWAY_KEY"),
        (("--key", "two words"), 2, "there are blanks in it"),
        (("--key", "schlüssel"), 2, "characters that no header can hold"),
        (("--key", "YOUR-GATEWAY-KEY"), 2, "it is a placeholder"),
        (("--key", KEY[:8]), 2, "it has 8 characters"),
        (("--key", KEY, "--url", "gateway:8080"), 2, "is no http(s)://HOST:PORT"),
        (("--key", KEY, "--url", "http://"), 2, "is no http(s)://HOST:PORT"),
        (("--key", KEY), 1, "Name the model with --model"),
        (("-c", "absent.yaml"), 2, "no such file"),
        (("--key", KEY, "--model", "m", "--write", "--json"), 2, "add --yes"),
    ],
)
def test_what_is_missing_or_wrong(
    run: Run,
    monkeypatch: pytest.MonkeyPatch,
    closed: str,
    words: tuple[str, ...],
    status: int,
    said: str,
) -> None:
    monkeypatch.setenv("COLUMNS", "300")
    url = () if "--url" in words else ("--url", closed)
    result = run("connect", "codex", *words, *url)
    assert result.status == status
    assert said in " ".join(result.err.split())
    assert KEY not in result.err + result.out


def test_an_unknown_client(run: Run) -> None:
    result = run("connect", "emacs")
    assert result.status == 2 and "claude-code" in result.err


# What is printed


def page(run: Run, closed: str, client: str, *words: str) -> str:
    result = run("connect", client, "--url", closed, "--key", KEY, "--model", "llama", *words)
    assert result.status == 0, result.err
    return str(result.out)


@pytest.mark.parametrize("client", CLIENTS)
def test_the_key_shows_only_when_asked_for(run: Run, closed: str, client: str) -> None:
    hidden = page(run, closed, client)
    assert KEY not in hidden and f"{KEY[:4]}… ({len(KEY)} characters)" in hidden
    assert KEY not in page(run, closed, client, "--json")
    assert KEY in page(run, closed, client, "--show-key")


def test_the_page(run: Run, closed: str) -> None:
    assert page(run, closed, "claude-code").startswith(f"""\
Claude Code, pointed at the gateway:

  base URL  {closed}
  key       sk-Y… (30 characters)
  model     llama

# The key, once in the shell (--show-key puts it here in whole):
export GATEWAY_KEY=YOUR-GATEWAY-KEY

# In the shell that starts it:
export ANTHROPIC_BASE_URL={closed}
export ANTHROPIC_AUTH_TOKEN="$GATEWAY_KEY"
export ANTHROPIC_MODEL=llama
export ANTHROPIC_DEFAULT_HAIKU_MODEL=llama
export CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC=1

# In ~/.claude/settings.json:
{{
  "env": {{
""")


def test_the_lines_for_the_shell_set_what_they_say(run: Run, closed: str) -> None:
    lines = page(run, closed, "qwen", "--show-key").splitlines()
    script = "\n".join(line for line in lines if line.startswith(("export ", "#")))
    done = subprocess.run(
        ["sh", "-c", f"{script}\necho $OPENAI_API_KEY $OPENAI_BASE_URL $OPENAI_MODEL"],
        capture_output=True,
        text=True,
        env={},
    )
    assert done.stdout.split() == [KEY, f"{closed}/v1", "llama"]


def test_a_key_that_the_shell_has_is_not_set_again(
    run: Run, closed: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GATEWAY_KEY", KEY)
    out = page(run, closed, "cline")
    assert "GATEWAY_KEY is set in this shell" in out and "export GATEWAY_KEY" not in out
    (command,) = [line for line in out.splitlines() if line.startswith("cline auth")]
    assert shlex.split(command) == [
        *("cline", "auth", "openai-compatible", "-k", "$GATEWAY_KEY"),
        *("-m", "llama", "-b", f"{closed}/v1"),
    ]


# What is written


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


@pytest.mark.parametrize("client", ["cline", "openai-python", "anthropic-python", "curl"])
def test_who_has_no_file_has_none_written(
    run: Run, closed: str, home: Path, client: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "300")
    result = write(run, closed, client, "--yes")
    assert result.status == 2 and "has no file to edit" in result.err
    assert not list(home.iterdir())


def test_a_file_that_cannot_be_edited_stops_it_before_anything_is_written(
    run: Run, closed: str, home: Path
) -> None:
    auth = home / ".codex" / "config.toml"
    auth.parent.mkdir()
    auth.write_text("model = ")
    result = write(run, closed, "codex", "--yes")
    assert result.status == 1 and "is no TOML that can be edited safely" in result.err
    assert [path.name for path in auth.parent.iterdir()] == ["config.toml"]
