"""Which client a request comes from, by the very headers the clients send."""

from __future__ import annotations

import anthropic
import openai
import pytest

from gateway.clients.known import CLIENTS, OTHER, _of_agent, recognise
from gateway.clients.profile import Profile

NAMES = [
    "claude-code",
    "codex",
    "cline",
    "opencode",
    "qwen",
    "continue",
    "openai-python",
    "anthropic-python",
    "curl",
]


def test_the_table_holds_the_clients_of_the_documentation() -> None:
    assert list(CLIENTS) == NAMES


@pytest.mark.parametrize(
    ("agent", "name"),
    [
        (b"claude-cli/2.1.197 (external, sdk-cli)", "claude-code"),
        (b"codex_exec/0.171.0 (Debian 12.0.0; x86_64) unknown (codex_exec; 0.171.0)", "codex"),
        (b"codex_cli_rs/0.38.0 (Ubuntu 24.4.0; x86_64) WindowsTerminal", "codex"),
        (b"Codex Desktop/1.0", "codex"),
        (b"opencode/1.18.33 ai-sdk/provider-utils/4.0.23 runtime/bun/1.3.14", "opencode"),
        (b"QwenCode/0.15.10 (linux; x64)", "qwen"),
        (b"Cline/3.0.65", "cline"),
        (b"ai-sdk/openai-compatible/3.0.37 ai-sdk/provider-utils/5.0.30", "cline"),  # its CLI
        (b"curl/8.14.1", "curl"),
        (b"OpenAI/JS 5.23.2", "openai-python"),
        (b"Anthropic/JS 0.70.0", "anthropic-python"),
        # These do not name themselves.
        (b"ls/JS 5.23.2", "other"),  # cn
        (b"python-httpx/0.28.1", "other"),
        (b"Mozilla/5.0 codex_exec/0.171.0", "other"),
        (b"", "other"),
        (b"\xff\x00", "other"),
    ],
)
def test_user_agents(agent: bytes, name: str) -> None:
    assert recognise([(b"host", b"x"), (b"user-agent", agent)]).name == name


def test_the_official_sdks_as_they_are_installed() -> None:
    for sdk, name in (
        (openai.OpenAI(api_key="x"), "openai-python"),
        (openai.AsyncOpenAI(api_key="x"), "openai-python"),
        (anthropic.Anthropic(api_key="x"), "anthropic-python"),
        (anthropic.AsyncAnthropic(api_key="x"), "anthropic-python"),
    ):
        assert recognise([(b"user-agent", sdk.user_agent.encode())]).name == name


def test_codex_by_its_originator_where_a_proxy_changed_the_agent() -> None:
    headers = [(b"originator", b"codex_cli_rs"), (b"user-agent", b"proxy/1")]
    assert recognise(headers).name == "codex"
    assert recognise(headers[::-1]).name == "codex"


def test_nobody() -> None:
    assert recognise([]) is OTHER
    assert recognise([(b"x-user-agent", b"curl/8")]) is OTHER


def test_long_names_are_not_kept_in_memory() -> None:
    _of_agent.cache_clear()
    for number in range(2000):
        recognise([(b"user-agent", b"%032d" % number + b"x" * 60_000)])
    assert _of_agent.cache_info().currsize <= 512


@pytest.mark.parametrize("profile", CLIENTS.values(), ids=lambda profile: profile.name)
def test_every_profile_is_whole(profile: Profile) -> None:
    assert profile.title and profile.path.startswith("/") and profile.user_agent
    assert all(agent == agent.lower() for agent in profile.agents)
