"""Cline. Its editor extension names itself; its command line goes by the name of its SDK."""

from __future__ import annotations

from gateway.clients.profile import Profile
from gateway.clients.setup import KEY_IN_SHELL, ReadFile, Setup, Target, in_shell
from gateway.records import Api


def _setup(target: Target, read: ReadFile) -> Setup:
    base_url, model = in_shell(target.base_url(Api.CHAT)), in_shell(target.model)
    key = in_shell(target.key_or(KEY_IN_SHELL))
    return Setup(
        commands=(f"cline auth openai-compatible -k {key} -m {model} -b {base_url}",),
        notes=(
            "In the editor: API provider OpenAI Compatible, with the base URL, key and model "
            "above. Cline keeps them in a store of its own, so there is no file to edit.",
        ),
    )


CLINE = Profile(
    name="cline",
    title="Cline",
    api=Api.CHAT,
    path="/chat/completions",
    setup=_setup,
    user_agent="ai-sdk/openai-compatible/3.0.37",
    agents=(b"cline/",),
)
