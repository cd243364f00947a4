"""One small request, put as a client puts it: its path, its headers, its API, streamed. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from gateway.clients.profile import Profile
from gateway.clients.setup import Target
from gateway.records import Api

QUESTION = "Answer with the word OK."
LONGEST_ANSWER = 16
"""Tokens; some APIs allow no fewer."""


@dataclass(frozen=True, slots=True)
class Trial:
    """A POST of a JSON body."""

    url: str
    headers: dict[str, str]
    body: dict[str, Any]


def trial(
    profile: Profile, target: Target, question: str = QUESTION, longest: int = LONGEST_ANSWER
) -> Trial:
    """The request by which `profile`'s client would first find out whether `target` works.

    Args:
        longest: tokens of the answer.
    """
    key = target.key or ""
    bearer = profile.credential == "authorization"
    headers = {
        profile.credential: f"Bearer {key}" if bearer else key,
        "user-agent": profile.user_agent,
        "accept": "text/event-stream",
    }
    if profile.api is Api.MESSAGES:
        headers["anthropic-version"] = "2023-06-01"
    body = _body(profile.api, target.model, question, longest)
    return Trial(target.base_url(profile.api) + profile.path, headers, body)


def _body(api: Api, model: str, question: str, longest: int) -> dict[str, Any]:
    said = {"model": model, "stream": True}
    if api is Api.RESPONSES:
        text = [{"type": "input_text", "text": question}]
        return said | {
            "input": [{"type": "message", "role": "user", "content": text}],
            "max_output_tokens": longest,
            "store": False,
        }
    said |= {
        "messages": [{"role": "user", "content": question}],
        "max_tokens": longest,
    }
    return said if api is Api.MESSAGES else said | {"stream_options": {"include_usage": True}}
