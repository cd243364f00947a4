"""`gateway connect`: which gateway, key and model; what is printed."""

from __future__ import annotations

import json
import shlex
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from gateway.clients.known import CLIENTS
from tests.settings.samples import KEY, OTHER_KEY, changed

Run = Callable[..., Any]


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


@pytest.mark.parametrize("host", ["127.0.0.1", "gateway.example.com"])
def test_the_usual_file_s_key_is_for_the_gateway_it_configures(
    run: Run, tmp_path: Path, closed: str, host: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever is asked for its models, or is tried, is sent the key."""
    monkeypatch.setenv("COLUMNS", "300")
    port = int(closed.rpartition(":")[2])
    configured(tmp_path, ("server", {"host": host, "port": 1 if host == "127.0.0.1" else port}))
    result = run("connect", "curl", "--url", closed, "--model", "m", "--show-key")
    assert (result.status, result.out) == (2, "")
    assert "set GATEWAY_KEY" in result.err and f"is of the gateway at http://{host}" in result.err


def test_the_usual_file_s_key_follows_its_address(run: Run, tmp_path: Path, closed: str) -> None:
    port = int(closed.rpartition(":")[2])
    configured(tmp_path, ("server", {"host": "0.0.0.0", "port": port}))
    words = ("--url", f"http://localhost:{port}/v1", "--show-key", "--json")
    assert json.loads(run("connect", "curl", *words).out)["key"] == KEY


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


def test_a_wrong_key_of_the_environment_is_called_so(
    run: Run, monkeypatch: pytest.MonkeyPatch, closed: str
) -> None:
    monkeypatch.setenv("GATEWAY_KEY", "two words")
    result = run("connect", "codex", "--url", closed)
    assert result.status == 2 and "Invalid value for GATEWAY_KEY: cannot be right" in result.err


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
