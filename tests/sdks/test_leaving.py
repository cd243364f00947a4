"""SDKs that leave before the end free the backend; those that have the last event do not leave."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from anthropic import AsyncAnthropic
from openai import AsyncOpenAI

from gateway.records import Outcome
from tests.sdks.clients import USER, in_thread, text_of
from tests.support.apis import CHAT, DIALECTS, MESSAGES, Dialect
from tests.support.patience import SLACK
from tests.support.running import KEY
from tests.support.scripted import chunk
from tests.support.site import Site, says, silent, streams

pytestmark = pytest.mark.asyncio(loop_scope="module")


async def test_a_stream_that_is_left_frees_the_backend(at: Site) -> None:
    at.play(streams(*CHAT.opening, *CHAT.tokens, then=silent))
    async with AsyncOpenAI(base_url=f"{at.it.url}/v1", api_key=KEY, max_retries=0) as client:
        chunks = await client.chat.completions.create(model="m", messages=USER, stream=True)
        async for one in chunks:
            if one.choices[0].delta.content:
                break
        await chunks.close()
    await asyncio.wait_for(at.backends[0].requests[0].left.wait(), SLACK)
    assert (await at.record()).outcome is Outcome.CLIENT_GONE


async def test_a_message_that_is_left_frees_the_backend(at: Site) -> None:
    at.play(streams(*MESSAGES.opening, *MESSAGES.tokens, then=silent))
    async with (
        AsyncAnthropic(base_url=at.it.url, api_key=KEY, max_retries=0) as client,
        client.messages.stream(model="m", messages=USER, max_tokens=9) as message,
    ):
        async for _ in message.text_stream:
            break
    await asyncio.wait_for(at.backends[0].requests[0].left.wait(), SLACK)
    assert (await at.record()).outcome is Outcome.CLIENT_GONE


async def test_a_call_that_is_cancelled_frees_the_backend(at: Site) -> None:
    async with AsyncOpenAI(base_url=f"{at.it.url}/v1", api_key=KEY, max_retries=0) as client:
        call = asyncio.ensure_future(client.responses.create(model="m", input="hi"))
        async with asyncio.timeout(5):
            while not at.backends[0].requests:
                await asyncio.sleep(0.005)
        call.cancel()
        await asyncio.wait_for(at.backends[0].requests[0].left.wait(), SLACK)
    assert (await at.record()).outcome is Outcome.CLIENT_GONE


@pytest.mark.parametrize("dialect", DIALECTS, ids=lambda one: one.api)
async def test_sdks_that_stop_at_the_last_event_have_the_whole_answer(
    at: Site, dialect: Dialect
) -> None:
    """Whether they wait for the end of the body is their business: it is no departure."""

    async def linger(*arguments: Any) -> None:
        await asyncio.sleep(0.2)
        await says(chunk(b""))(*arguments)

    at.play(streams(*dialect.frames, then=linger))
    assert await in_thread(text_of, at, dialect) == "ab"
    assert (await at.record()).outcome is Outcome.OK
