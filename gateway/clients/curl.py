"""curl: whoever wants to see the bytes."""

from __future__ import annotations

import json
import shlex

from gateway.clients.profile import Profile
from gateway.clients.setup import KEY_IN_SHELL, ReadFile, Setup, Target, in_shell
from gateway.records import Api


def _setup(target: Target, read: ReadFile) -> Setup:
    body = {
        "model": target.model,
        "messages": [{"role": "user", "content": "Hello"}],
        "stream": True,
    }
    url = in_shell(f"{target.base_url(Api.CHAT)}/chat/completions")
    lines = (
        f"curl -N {url}",
        f'-H "Authorization: Bearer {KEY_IN_SHELL}"',
        "-H 'Content-Type: application/json'",
        f"-d {shlex.quote(json.dumps(body))}",
    )
    return Setup(commands=(" \\\n  ".join(lines),))


CURL = Profile(
    name="curl",
    title="curl",
    api=Api.CHAT,
    path="/chat/completions",
    setup=_setup,
    user_agent="curl/8.14.1",
    agents=(b"curl/",),
)
