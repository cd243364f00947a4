"""When the clock of the first token stops, through a whole gateway."""

from __future__ import annotations

import time

import pytest

from tests.support.apis import CHAT, MESSAGES, RESPONSES
from tests.support.scripted import SSE_HEAD, chunk
from tests.support.site import (
    Site,
    answers,
    says,
)

pytestmark = pytest.mark.asyncio(loop_scope="module")


async def test_the_first_token_of_messages_is_not_the_end(at: Site) -> None:
    """litellm#25598: on /v1/messages the time to the first token was the whole duration."""
    at.play(answers(MESSAGES, pause=0.03))
    await at.ask(MESSAGES)
    line = (await at.record()).timeline
    assert line.first_byte and line.first_token and line.last_token and line.done
    assert line.first_token - line.first_byte > 0.05, "message_start stopped the clock"
    assert line.done - line.first_token > 0.1


async def test_announcements_of_responses_are_no_token(at: Site) -> None:
    """`response.created` comes before the engine has done anything."""
    at.play(answers(RESPONSES, pause=0.03))
    await at.ask(RESPONSES)
    line = (await at.record()).timeline
    assert line.first_byte and line.first_token
    assert line.first_token - line.first_byte > 0.08


async def test_a_head_in_good_time_is_not_a_stream(at: Site) -> None:
    """vLLM sends its head before it has looked at the prompt: the gateway's head waits."""
    at.play(says(SSE_HEAD, b"".join(map(chunk, CHAT.frames)) + chunk(b""), pause=0.2))
    began = time.monotonic()
    async with at.client.stream("POST", CHAT.path, json=CHAT.streamed) as response:
        assert time.monotonic() - began > 0.18
        await response.aread()
    line = (await at.record()).timeline
    assert line.upstream_headers and line.first_byte
    assert line.first_byte - line.upstream_headers > 0.18
