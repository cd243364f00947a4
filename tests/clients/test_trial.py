"""The request that tries a client's settings: as that client would put it."""

from __future__ import annotations

import pytest

from gateway.clients.known import CLIENTS, recognise
from gateway.clients.profile import Profile
from gateway.clients.setup import Target
from gateway.clients.trial import trial

TARGET = Target("http://gw.example/api", "sk-k", "m")

every_client = pytest.mark.parametrize("profile", CLIENTS.values(), ids=lambda one: one.name)


@pytest.mark.parametrize(
    ("name", "url"),
    [
        ("claude-code", "http://gw.example/api/v1/messages?beta=true"),
        ("codex", "http://gw.example/api/v1/responses"),
        ("opencode", "http://gw.example/api/v1/chat/completions"),
        ("anthropic-python", "http://gw.example/api/v1/messages"),
        ("curl", "http://gw.example/api/v1/chat/completions"),
    ],
)
def test_addresses(name: str, url: str) -> None:
    assert trial(CLIENTS[name], TARGET).url == url


@every_client
def test_it_is_streamed_short_and_carries_the_key_in_one_header(profile: Profile) -> None:
    request = trial(profile, TARGET)
    assert request.body["stream"] is True and request.body["model"] == "m"
    caps = {"max_tokens", "max_output_tokens"} & set(request.body)
    assert [request.body[cap] for cap in caps] == [16]
    carriers = {name: text for name, text in request.headers.items() if "sk-k" in text}
    by_key = profile.name == "anthropic-python"
    assert carriers == ({"x-api-key": "sk-k"} if by_key else {"authorization": "Bearer sk-k"})


@every_client
def test_who_names_itself_is_recognised_by_it(profile: Profile) -> None:
    agent = trial(profile, TARGET).headers["user-agent"].encode()
    if any(agent.lower().startswith(known) for known in profile.agents):
        assert recognise([(b"user-agent", agent)]) is profile
    else:
        assert profile.name in ("cline", "continue")
