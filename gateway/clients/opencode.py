"""opencode: the Chat API by the AI SDK, with its session in two headers."""

from __future__ import annotations

from gateway.clients.profile import Profile
from gateway.clients.setup import KEY_VARIABLE, ReadFile, Setup, Target, UserFile
from gateway.errors import Forbidden
from gateway.records import Api

PROVIDER = "ttft-gateway"
LONGEST_ANSWER = 32_000


def _setup(target: Target, read: ReadFile) -> Setup:
    model: dict[str, object] = {"name": target.model}
    if target.context_window is not None:
        # It compacts by these, and wants both or none.
        output = min(target.context_window // 4, LONGEST_ANSWER)
        model["limit"] = {"context": target.context_window, "output": output}
    provider = {
        "npm": "@ai-sdk/openai-compatible",
        "name": "TTFT Gateway",
        "options": {
            "baseURL": target.base_url(Api.CHAT),
            "apiKey": target.key_or(f"{{env:{KEY_VARIABLE}}}"),
        },
        "models": {target.model: model},
    }
    return Setup(
        files=(
            UserFile(
                ".config/opencode/opencode.json",
                "json",
                {"provider": {PROVIDER: provider}, "model": f"{PROVIDER}/{target.model}"},
                defaults={"$schema": "https://opencode.ai/config.json"},
                moved=("XDG_CONFIG_HOME", "opencode/opencode.json"),
                wins=("opencode.jsonc",),
            ),
        ),
    )


OPENCODE = Profile(
    name="opencode",
    title="opencode",
    api=Api.CHAT,
    path="/chat/completions",
    setup=_setup,
    user_agent="opencode/1.18.33",
    agents=(b"opencode/",),
    session_headers=(b"x-session-id", b"x-session-affinity"),
    gives_up_at=Forbidden,
    sits_out_limits=True,
)
