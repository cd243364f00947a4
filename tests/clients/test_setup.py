"""What each client's user sets: complete, pasteable, and without the key where it may not show."""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping
from typing import Any

import pytest

from gateway.clients.known import CLIENTS
from gateway.clients.profile import Profile
from gateway.clients.setup import KEY_IN_SHELL, Setup, Target, UserFile, in_shell
from gateway.records import Api

KEY = "sk-test-0123456789abcdefghijkl"
OPEN = Target("https://gw.example/api", KEY, "llama", 131072)
CLOSED = Target("https://gw.example/api", None, "llama", 131072)

every_client = pytest.mark.parametrize("profile", CLIENTS.values(), ids=lambda one: one.name)


def nothing(file: UserFile) -> str | None:
    return None


def everything(setup: Setup) -> str:
    files = [json.dumps([file.path, file.values, file.defaults]) for file in setup.files]
    return "\n".join(
        [json.dumps(dict(setup.environment)), *files, *setup.commands, setup.code, *setup.notes]
    )


def values(setup: Setup, number: int = 0) -> Mapping[str, Any]:
    return setup.files[number].values


@every_client
def test_url_and_model_are_in_it_and_the_key_only_if_it_was_given(profile: Profile) -> None:
    closed = everything(profile.setup(CLOSED, nothing))
    base_url = "https://gw.example/api" + ("" if profile.api is Api.MESSAGES else "/v1")
    assert OPEN.base_url(profile.api) == base_url
    assert base_url in closed
    assert ("api/v1" in closed) == (profile.api is not Api.MESSAGES)
    assert "llama" in closed
    assert KEY not in closed
    assert "GATEWAY" in closed


def test_claude_code() -> None:
    setup = CLIENTS["claude-code"].setup(OPEN, nothing)
    expected = {
        "ANTHROPIC_BASE_URL": "https://gw.example/api",
        "ANTHROPIC_AUTH_TOKEN": KEY_IN_SHELL,
        "ANTHROPIC_MODEL": "llama",
        "ANTHROPIC_DEFAULT_HAIKU_MODEL": "llama",
        "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
    }
    assert setup.environment == expected
    assert values(setup) == {"env": expected | {"ANTHROPIC_AUTH_TOKEN": KEY}}


def test_codex_by_the_environment() -> None:
    setup = CLIENTS["codex"].setup(CLOSED, nothing)
    (file,) = setup.files
    assert file.path == ".codex/config.toml"
    assert file.values == {
        "model": "llama",
        "model_provider": "ttft-gateway",
        "model_context_window": 131072,
        "model_providers": {
            "ttft-gateway": {
                "name": "TTFT Gateway",
                "base_url": "https://gw.example/api/v1",
                "wire_api": "responses",
                "env_key": "GATEWAY_KEY",
                "requires_openai_auth": None,
            }
        },
    }


@pytest.mark.parametrize("auth", [None, "", "{}", '{"OPENAI_API_KEY": "old", "tokens": null}'])
def test_codex_by_its_auth_file(auth: str | None) -> None:
    setup = CLIENTS["codex"].setup(OPEN, lambda file: auth)
    config, kept = setup.files
    provider = config.values["model_providers"]["ttft-gateway"]
    assert provider["requires_openai_auth"] is True
    assert provider["env_key"] is None
    assert (kept.path, kept.values) == (".codex/auth.json", {"OPENAI_API_KEY": KEY})
    assert not setup.left


@pytest.mark.parametrize("auth", ['{"tokens": {"access_token": "x"}}', "not json", "[1]"])
def test_a_login_of_codex_is_left_alone(auth: str) -> None:
    setup = CLIENTS["codex"].setup(OPEN, lambda file: auth)
    assert [file.path for file in setup.files] == [".codex/config.toml"]
    assert values(setup)["model_providers"]["ttft-gateway"]["env_key"] == "GATEWAY_KEY"
    assert "set it in the shell that starts Codex" in setup.left[0]


def test_opencode_knows_the_window_or_nothing_of_it() -> None:
    def model(target: Target) -> Any:
        provider = values(CLIENTS["opencode"].setup(target, nothing))["provider"]["ttft-gateway"]
        assert provider["npm"] == "@ai-sdk/openai-compatible"
        return provider["models"]["llama"]

    assert model(OPEN) == {"name": "llama", "limit": {"context": 131072, "output": 32000}}
    small = Target(OPEN.root, KEY, "llama", 8192)
    assert model(small)["limit"] == {"context": 8192, "output": 2048}
    assert model(Target(OPEN.root, KEY, "llama")) == {"name": "llama"}


def test_keys_stand_in_files_or_by_a_reference_the_client_follows() -> None:
    def key(name: str, target: Target, *path: str | int) -> Any:
        found: Any = values(CLIENTS[name].setup(target, nothing))
        for part in path:
            found = found[part]
        return found

    options = ("provider", "ttft-gateway", "options", "apiKey")
    assert key("opencode", OPEN, *options) == KEY
    assert key("opencode", CLOSED, *options) == "{env:GATEWAY_KEY}"
    assert key("qwen", OPEN, "env", "OPENAI_API_KEY") == KEY
    assert key("continue", OPEN, "models", 0, "apiKey") == KEY
    assert key("continue", CLOSED, "models", 0, "apiKey") == "YOUR-GATEWAY-KEY"


ODD = Target("https://gw.example", None, "it's a $(model); `x`")


@pytest.mark.parametrize("name", ["cline", "curl"])
def test_no_model_name_leaves_its_place_in_a_command(name: str) -> None:
    (command,) = CLIENTS[name].setup(ODD, nothing).commands
    words = shlex.split(command.replace("\\\n", ""))
    assert len(words) == 9
    if name == "curl":
        assert json.loads(words[-1])["model"] == ODD.model
        assert words[4] == "Authorization: Bearer $GATEWAY_KEY"
    else:
        assert words[6] == ODD.model


@pytest.mark.parametrize("name", ["openai-python", "anthropic-python"])
def test_programs_are_programs(name: str) -> None:
    for target in (OPEN, ODD):
        code = CLIENTS[name].setup(target, nothing).code
        compile(code, name, "exec")
        assert repr(target.model) in code and KEY not in code


def test_words_of_a_shell() -> None:
    assert in_shell("$GATEWAY_KEY") == '"$GATEWAY_KEY"'
    assert in_shell("$HOME; x") == "'$HOME; x'"
    assert in_shell("llama-3") == "llama-3"
