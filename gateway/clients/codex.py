"""Codex: the Responses API; after a 5xx it asks 30 times, after a failed stream 6 times or once."""

from __future__ import annotations

import json
from dataclasses import replace

from gateway.clients.profile import Profile
from gateway.clients.setup import KEY_VARIABLE, ReadFile, Setup, Target, UserFile
from gateway.errors import BadRequest
from gateway.records import Api

CACHE_KEY = b"prompt_cache_key"
"""The field of its body that names the session again."""

PROVIDER = "ttft-gateway"

CONFIG = UserFile(".codex/config.toml", "toml", moved=("CODEX_HOME", "config.toml"))
AUTH = UserFile(".codex/auth.json", "json", moved=("CODEX_HOME", "auth.json"))
KEY_IN_AUTH = "OPENAI_API_KEY"


def _setup(target: Target, read: ReadFile) -> Setup:
    if target.key is None or _signed_in(read(AUTH)):
        return Setup(
            files=(_config(target, {"env_key": KEY_VARIABLE, "requires_openai_auth": None}),),
            notes=(
                f"Codex reads the key from {KEY_VARIABLE} whenever it starts. It can also stand in "
                f"~/{AUTH.path} as {KEY_IN_AUTH}, with requires_openai_auth = true in place "
                "of env_key; --write does that unless a ChatGPT login is kept there.",
            ),
            left=(
                "A ChatGPT login is kept in auth.json and stays there, so Codex reads the key from "
                f"{KEY_VARIABLE}: set it in the shell that starts Codex.",
            ),
        )
    config = _config(target, {"env_key": None, "requires_openai_auth": True})
    return Setup(files=(config, replace(AUTH, values={KEY_IN_AUTH: target.key})))


def _config(target: Target, credential: dict[str, object]) -> UserFile:
    provider = {
        "name": "TTFT Gateway",
        "base_url": target.base_url(Api.RESPONSES),
        "wire_api": "responses",
        **credential,
    }
    values: dict[str, object] = {"model": target.model, "model_provider": PROVIDER}
    if target.context_window is not None:
        # It knows the windows of OpenAI's own models only, and compacts by this figure.
        values["model_context_window"] = target.context_window
    values["model_providers"] = {PROVIDER: provider}
    return replace(CONFIG, values=values)


def _signed_in(auth: str | None) -> bool:
    """Whether the file keeps a ChatGPT login, which a key beside it would displace."""
    try:
        kept = json.loads(auth or "{}")
    except ValueError:
        return True
    return not isinstance(kept, dict) or bool(kept.get("tokens"))


CODEX = Profile(
    name="codex",
    title="Codex",
    api=Api.RESPONSES,
    path="/responses",
    setup=_setup,
    user_agent="codex_cli_rs/0.171.0",
    agents=(b"codex",),
    # Its sub-agents have threads of their own within one session, so the session comes first.
    session_headers=(b"session-id", b"thread-id"),
    early_ping=True,
    failures_in_stream=True,
    quota_code="insufficient_quota",
    waits_for_limits=True,
    tries_rejections_again=True,
    gives_up_at=BadRequest,
)
