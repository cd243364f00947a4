"""Cline. Its editor extension names itself; its command line goes by the name of its SDK.

By that name go all programs on the AI SDK, which decides for them by status what to try again.
"""

from __future__ import annotations

from gateway.clients.profile import Profile
from gateway.clients.setup import KEY_IN_SHELL, ReadFile, Setup, Target, in_shell
from gateway.errors import Forbidden
from gateway.records import Api


def _setup(target: Target, read: ReadFile) -> Setup:
    # It takes the key as an argument only: neither standard input nor a variable will do.
    key, url = target.key_or(KEY_IN_SHELL), target.base_url(Api.CHAT)
    program = ("cline", "auth", "openai-compatible", "-k", key, "-m", target.model, "-b", url)
    return Setup(
        commands=(" ".join(map(in_shell, program)),),
        program=program,
        install="npm install -g cline",
        notes=(
            "In the editor: API provider OpenAI Compatible, with the base URL, key and model "
            "above. Cline keeps them in a store of its own; its command is what writes there.",
        ),
    )


CLINE = Profile(
    name="cline",
    title="Cline",
    api=Api.CHAT,
    path="/chat/completions",
    setup=_setup,
    user_agent="ai-sdk/openai-compatible/3.0.37",
    agents=(b"cline/", b"ai-sdk/openai-compatible/"),
    gives_up_at=Forbidden,
)
