"""Errors and signs of life told so that each client does the right thing about them."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from gateway.records import Outcome
from tests.support.apis import CHAT, MESSAGES, RESPONSES, Dialect
from tests.support.running import KEY
from tests.support.site import Site, answers, refuses, silent, streams

pytestmark = pytest.mark.asyncio(loop_scope="module")

CODEX = {"user-agent": "codex_cli_rs/0.171.0", "originator": "codex_cli_rs"}
CLAUDE = {"user-agent": "claude-cli/2.1.197 (external, cli)"}
OTHER = {"user-agent": "made-up/1"}
TOO_LONG = (
    "This model's maximum context length is 8192 tokens. However, you requested 9000 tokens "
    "(8500 in the messages, 500 in the completion). Please reduce the length of the messages."
)


async def failed(at: Site, dialect: Dialect) -> dict[str, Any]:
    """The error of a streamed answer that Codex gets as a stream."""
    response = await at.ask(dialect, headers=CODEX)
    assert response.status_code == 200
    assert response.headers["content-type"].startswith("text/event-stream")
    return dialect.failure(response.content)


async def test_codex_is_told_of_a_prompt_too_long_within_a_stream(at: Site) -> None:
    at.play(refuses("400 Bad Request", TOO_LONG))
    assert (await failed(at, RESPONSES))["code"] == "context_length_exceeded"
    assert (await at.record()).outcome is Outcome.REJECTED


async def test_codex_is_told_of_a_lost_backend_within_a_stream(at: Site) -> None:
    at.play(silent)
    at.backend().enabled = False
    try:
        assert (await failed(at, RESPONSES))["code"] == "server_is_overloaded"
    finally:
        at.backend().enabled = True


async def test_others_get_a_status(at: Site) -> None:
    at.play(refuses("400 Bad Request", TOO_LONG))
    response = await at.ask(RESPONSES, headers=OTHER)
    assert response.status_code == 400
    assert response.json()["error"]["code"] == "context_length_exceeded"


async def test_codex_gets_a_status_for_what_it_does_not_stream(at: Site) -> None:
    at.play(refuses("400 Bad Request", TOO_LONG))
    assert (await at.ask(RESPONSES, stream=False, headers=CODEX)).status_code == 400


NO_ROOM = TOO_LONG.replace("9000", "9100").replace("8500", "5000").replace("500 in", "4100 in")


@pytest.mark.parametrize("agent", [CLAUDE, OTHER], ids=["claude", "other"])
@pytest.mark.parametrize(
    ("engine", "anthropic"),
    [
        (TOO_LONG, "prompt is too long: 8500 tokens > 8192 maximum"),
        (NO_ROOM, "input length and `max_tokens` exceed context limit: 5000 + 4100 > 8192"),
    ],
    ids=["the prompt", "the answer"],
)
async def test_messages_say_in_anthropic_s_words_what_is_too_long(
    at: Site, agent: dict[str, str], engine: str, anthropic: str
) -> None:
    at.play(refuses("400 Bad Request", engine))
    error = (await at.ask(MESSAGES, headers=agent)).json()["error"]
    assert error["type"] == "invalid_request_error"
    assert error["message"].startswith(anthropic)


async def test_chat_keeps_the_engine_s_words(at: Site) -> None:
    at.play(refuses("400 Bad Request", TOO_LONG))
    assert (await at.ask(CHAT, headers=CLAUDE)).json()["error"]["message"] == TOO_LONG


async def test_a_used_up_limit_stops_each_client(at: Site) -> None:
    at.play(answers(RESPONSES))
    at.configure(keys=[{"name": "dev", "key": KEY, "tokens_per_minute": 1}])
    assert (await at.ask(RESPONSES)).status_code == 200
    codex = await at.ask(RESPONSES, headers=CODEX)
    assert codex.status_code == 429
    assert codex.json()["error"]["code"] == "insufficient_quota"
    claude = await at.ask(MESSAGES, headers=CLAUDE)
    assert claude.headers["x-should-retry"] == "false"
    assert int(claude.headers["retry-after"]) > 60
    other = await at.ask(CHAT, headers=OTHER)
    assert other.json()["error"]["code"] == "rate_limit_exceeded"
    assert "x-should-retry" not in other.headers


CLINE = {"user-agent": "ai-sdk/openai-compatible/3.0.37"}


async def test_a_backend_that_turns_the_gateway_away_is_tried_once_by_each_client(
    at: Site,
) -> None:
    at.play(refuses("401 Unauthorized", "who are you"))
    codex = await at.ask(RESPONSES, headers=CODEX)
    claude = await at.ask(MESSAGES, headers=CLAUDE)
    cline = await at.ask(CHAT, headers=CLINE)
    other = await at.ask(CHAT, headers=OTHER)
    told = [one.status_code for one in (codex, claude, cline, other)]
    assert told == [400, 502, 403, 502]
    assert claude.headers["x-should-retry"] == "false"
    assert all("tell the operator" in one.text for one in (codex, claude, cline, other))
    records = [await at.record(number) for number in range(1, 5)]
    assert {one.outcome for one in records} == {Outcome.BACKEND_ERROR}


async def test_signs_of_life_count_for_codex_before_the_first_event(at: Site) -> None:
    at.play(streams(*RESPONSES.frames, delay=0.4))
    at.configure(keepalive_interval=0.1)
    codex, other = await asyncio.gather(
        at.ask(RESPONSES, headers=CODEX), at.ask(RESPONSES, headers=OTHER)
    )
    assert codex.text.startswith('data: {"type":"ping"}\n\n')
    assert other.text.startswith(": keep-alive\n\n")


async def test_the_anthropic_sdk_finds_the_request_s_id(at: Site) -> None:
    at.play(answers(MESSAGES))
    response = await at.ask(MESSAGES)
    assert response.headers["request-id"] == response.headers["x-request-id"]
    assert "request-id" not in (await at.ask(CHAT)).headers
