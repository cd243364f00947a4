"""Anthropic's SDK, blocking and asynchronous, against a running gateway, as users have it."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

import pytest

from gateway.records import Api
from tests.sdks.clients import CLAUDE, TEXT, TOKENS, USER, Clients, in_thread

pytestmark = pytest.mark.asyncio(loop_scope="module")


def told_by_message(reply: Any) -> tuple[int, int]:
    assert (reply.model, reply.role, reply.stop_reason) == (CLAUDE, "assistant", "max_tokens")
    assert [(block.type, block.text) for block in reply.content] == [("text", TEXT)]
    assert reply.usage.cache_read_input_tokens == 0
    return reply.usage.input_tokens, reply.usage.output_tokens


def told_by_message_events(events: Sequence[Any]) -> tuple[int, int]:
    assert (events[0].type, events[-1].type) == ("message_start", "message_stop")
    assert events[0].message.model == CLAUDE
    deltas = [event.delta.text for event in events if event.type == "content_block_delta"]
    assert "".join(deltas) == TEXT
    return events[0].message.usage.input_tokens, events[-2].usage.output_tokens


async def test_anthropic_messages(clients: Clients) -> None:
    ask: Any = {"model": CLAUDE, "messages": USER, "max_tokens": TOKENS}
    reply = await in_thread(clients.anthropic.messages.create, **ask)
    told = prompt, completion = told_by_message(reply)
    await clients.recorded(Api.MESSAGES, stream=False, prompt=prompt, completion=completion)
    assert told_by_message(await clients.anthropic_async.messages.create(**ask)) == told


async def test_anthropic_messages_streamed(clients: Clients) -> None:
    ask: Any = {"model": CLAUDE, "messages": USER, "max_tokens": TOKENS}

    def use() -> list[Any]:
        with clients.anthropic.messages.create(**ask, stream=True) as stream:
            return list(stream)

    told = prompt, completion = told_by_message_events(await asyncio.to_thread(use))
    await clients.recorded(Api.MESSAGES, stream=True, prompt=prompt, completion=completion)
    async with await clients.anthropic_async.messages.create(**ask, stream=True) as stream:
        assert told_by_message_events([event async for event in stream]) == told


async def test_anthropic_messages_stream_helper(clients: Clients) -> None:
    ask: Any = {"model": CLAUDE, "messages": USER, "max_tokens": TOKENS}

    def use() -> tuple[str, Any]:
        with clients.anthropic.messages.stream(**ask) as stream:
            return "".join(stream.text_stream), stream.get_final_message()

    text, final = await asyncio.to_thread(use)
    assert text == TEXT
    told = told_by_message(final)
    async with clients.anthropic_async.messages.stream(**ask) as stream:
        assert "".join([piece async for piece in stream.text_stream]) == TEXT
        assert told_by_message(await stream.get_final_message()) == told


async def test_anthropic_count_tokens(clients: Clients) -> None:
    ask: Any = {"model": CLAUDE, "messages": USER}
    counted = await in_thread(clients.anthropic.messages.count_tokens, **ask)
    reply = await clients.anthropic_async.messages.create(**ask, max_tokens=1)
    assert counted.input_tokens == reply.usage.input_tokens > 0
    assert await clients.anthropic_async.messages.count_tokens(**ask) == counted


async def test_anthropic_models(clients: Clients) -> None:
    listed = await in_thread(clients.anthropic.models.list)
    assert [(one.id, one.type) for one in listed.data] == [("m", "model"), ("other", "model")]
    assert not listed.has_more and listed.data[0].created_at.year == 1970
    assert [one.id async for one in clients.anthropic_async.models.list()] == ["m", "other"]
    assert (await clients.anthropic_async.models.retrieve(CLAUDE)).id == CLAUDE
