"""The clients the gateway knows, and which of them a request comes from."""

from __future__ import annotations

from functools import lru_cache

from gateway.clients.anthropic_python import ANTHROPIC_PYTHON
from gateway.clients.claude_code import CLAUDE_CODE
from gateway.clients.cline import CLINE
from gateway.clients.codex import CODEX
from gateway.clients.continue_dev import CONTINUE
from gateway.clients.curl import CURL
from gateway.clients.openai_python import OPENAI_PYTHON
from gateway.clients.opencode import OPENCODE
from gateway.clients.profile import Headers, Profile
from gateway.clients.qwen import QWEN
from gateway.clients.setup import ReadFile, Setup, Target
from gateway.records import Api


def _nothing_more(target: Target, read: ReadFile) -> Setup:
    return Setup()


CLIENTS = {
    profile.name: profile
    for profile in (
        CLAUDE_CODE,
        CODEX,
        CLINE,
        OPENCODE,
        QWEN,
        CONTINUE,
        OPENAI_PYTHON,
        ANTHROPIC_PYTHON,
        CURL,
    )
}

OTHER = Profile(
    name="other",
    title="Any other client",
    api=Api.CHAT,
    path="/chat/completions",
    setup=_nothing_more,
    session_headers=(b"x-session-id",),
)
"""Who is not recognised, or does not say."""

_AGENTS = tuple((agent, profile) for profile in CLIENTS.values() for agent in profile.agents)

_ENOUGH = 32
"""Bytes of a name that tell clients apart; what follows are versions and systems."""


def recognise(headers: Headers) -> Profile:
    """The client a request comes from, by what it calls itself.

    Args:
        headers: names in lower case.
    """
    for name, value in headers:
        if name == b"user-agent" or name == b"originator":
            profile = _of_agent(value[:_ENOUGH])
            if profile is not OTHER:
                return profile
    return OTHER


@lru_cache(maxsize=512)
def _of_agent(agent: bytes) -> Profile:
    agent = agent.lower()
    for beginning, profile in _AGENTS:
        if agent.startswith(beginning):
            return profile
    return OTHER
