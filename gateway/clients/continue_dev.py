"""Continue, in the editor and as `cn`: the Chat API. It does not name itself."""

from __future__ import annotations

from gateway.clients.profile import Profile
from gateway.clients.setup import PLACEHOLDER, ReadFile, Setup, Target, UserFile
from gateway.records import Api

_SIGNED_IN = "If cn is signed in, name the file: cn --config ~/.continue/config.yaml"


def _setup(target: Target, read: ReadFile) -> Setup:
    model = {
        "name": "TTFT Gateway",
        "provider": "openai",
        "model": target.model,
        "apiBase": target.base_url(Api.CHAT),
        "apiKey": target.key_or(PLACEHOLDER),
        "roles": ["chat", "edit", "apply"],
    }
    return Setup(
        files=(
            UserFile(
                ".continue/config.yaml",
                "yaml",
                {"models": [model]},
                defaults={"name": "Local", "version": "1.0.0", "schema": "v1"},
                moved=("CONTINUE_GLOBAL_DIR", "config.yaml"),
            ),
        ),
        notes=(_SIGNED_IN,),
        left=(_SIGNED_IN,),
    )


CONTINUE = Profile(
    name="continue",
    title="Continue",
    api=Api.CHAT,
    path="/chat/completions",
    setup=_setup,
    user_agent="OpenAI/JS 5.23.2",
    obeys_should_retry=True,
)
