"""Qwen Code: the Chat API by OpenAI's JavaScript SDK."""

from __future__ import annotations

from gateway.clients.profile import Profile
from gateway.clients.setup import KEY_IN_SHELL, PLACEHOLDER, ReadFile, Setup, Target, UserFile
from gateway.errors import Forbidden
from gateway.records import Api


def _setup(target: Target, read: ReadFile) -> Setup:
    variables = {
        "OPENAI_BASE_URL": target.base_url(Api.CHAT),
        "OPENAI_API_KEY": KEY_IN_SHELL,
        "OPENAI_MODEL": target.model,
    }
    values = {
        "security": {"auth": {"selectedType": "openai"}},
        "model": {"name": target.model},
        "env": variables | {"OPENAI_API_KEY": target.key_or(PLACEHOLDER)},
    }
    return Setup(
        environment=variables,
        files=(UserFile(".qwen/settings.json", "json", values),),
        notes=(
            "Either the variables, with qwen --auth-type openai, or the file is enough; variables "
            "of the shell win over those of the file.",
        ),
    )


QWEN = Profile(
    name="qwen",
    title="Qwen Code",
    api=Api.CHAT,
    path="/chat/completions",
    setup=_setup,
    user_agent="QwenCode/0.15.10 (linux; x64)",
    agents=(b"qwencode/",),
    obeys_should_retry=True,
    tries_around_its_sdk=True,
    gives_up_at=Forbidden,
)
