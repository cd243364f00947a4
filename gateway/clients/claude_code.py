"""Claude Code: the Messages API, and a session in a header and in `metadata.user_id`."""

from __future__ import annotations

import re
from dataclasses import replace

import msgspec

from gateway.clients.profile import Profile
from gateway.clients.setup import KEY_IN_SHELL, PLACEHOLDER, ReadFile, Setup, Target, UserFile
from gateway.records import Api

# What it wrote before JSON: user_<hash>_account_<uuid or nothing>_session_<uuid>.
_OLD_METADATA = re.compile(
    r"_session_([0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12})", re.IGNORECASE
)


class _Metadata(msgspec.Struct, gc=False):
    """What it writes, as a JSON string, into `metadata.user_id`."""

    session_id: str = ""


_decode_metadata = msgspec.json.Decoder(_Metadata).decode


def session_in(user_id: str) -> str:
    """The session that a `metadata.user_id` (not empty) names, or nothing."""
    if user_id[0] == "{":
        try:
            return _decode_metadata(user_id).session_id.strip()
        except (msgspec.DecodeError, UnicodeEncodeError, RecursionError):
            return ""
    old = _OLD_METADATA.search(user_id)
    return old[1] if old else ""


BASE_URL = "ANTHROPIC_BASE_URL"
TOKEN = "ANTHROPIC_AUTH_TOKEN"
MODEL = "ANTHROPIC_MODEL"
SMALL_MODEL = "ANTHROPIC_DEFAULT_HAIKU_MODEL"

SETTINGS = UserFile(".claude/settings.json", "json", moved=("CLAUDE_CONFIG_DIR", "settings.json"))


def _setup(target: Target, read: ReadFile) -> Setup:
    variables = {
        BASE_URL: target.base_url(Api.MESSAGES),
        TOKEN: KEY_IN_SHELL,
        MODEL: target.model,
        # Titles and summaries go to the small model; without this it asks for one of Anthropic's.
        SMALL_MODEL: target.model,
        "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
    }
    kept = variables | {TOKEN: target.key_or(PLACEHOLDER)}
    return Setup(
        environment=variables,
        files=(replace(SETTINGS, values={"env": kept}),),
        notes=(
            "Either the variables or the file is enough. The base URL has no /v1: Claude Code "
            "adds it.",
        ),
    )


CLAUDE_CODE = Profile(
    name="claude-code",
    title="Claude Code",
    api=Api.MESSAGES,
    path="/v1/messages?beta=true",
    setup=_setup,
    user_agent="claude-cli/2.1.197 (external, cli)",
    agents=(b"claude-cli",),
    session_headers=(b"x-claude-code-session-id",),
    obeys_should_retry=True,
)
