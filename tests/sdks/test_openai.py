"""OpenAI's SDK, blocking and asynchronous, against a running gateway, as users have it.

It checks replies against types of its own and keeps the state of streams; bytes that look right
in another test may fail here.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

import openai
import pytest

from gateway.records import Api
from gateway.simulator import answer
from tests.sdks.clients import GPT, TEXT, TOKENS, USER, Clients, in_thread

pytestmark = pytest.mark.asyncio(loop_scope="module")

USAGE: Any = {"include_usage": True}


def told_by_chat(reply: Any) -> tuple[int, int]:
    """A whole chat completion is as the engine made it; its prompt and completion tokens."""
    assert (reply.model, reply.object) == (GPT, "chat.completion")
    assert (reply.choices[0].message.content, reply.choices[0].finish_reason) == (TEXT, "length")
    assert reply.usage.prompt_tokens_details.cached_tokens == 0
    return reply.usage.prompt_tokens, reply.usage.completion_tokens


def told_by_chunks(chunks: Sequence[Any]) -> tuple[int, int]:
    *chunks, last = chunks
    assert last.choices == []
    assert {chunk.model for chunk in chunks} == {GPT} and len({chunk.id for chunk in chunks}) == 1
    assert "".join(chunk.choices[0].delta.content or "" for chunk in chunks) == TEXT
    assert chunks[-1].choices[0].finish_reason == "length"
    return last.usage.prompt_tokens, last.usage.completion_tokens


def told_by_texts(chunks: Sequence[Any]) -> tuple[int, int]:
    *chunks, last = chunks
    assert last.choices == []
    assert {chunk.model for chunk in chunks} == {GPT}
    assert "".join(chunk.choices[0].text for chunk in chunks) == TEXT
    return last.usage.prompt_tokens, last.usage.completion_tokens


def told_by_response(reply: Any) -> tuple[int, int]:
    assert (reply.model, reply.output_text, reply.status) == (GPT, TEXT, "incomplete")
    assert reply.incomplete_details.reason == "max_output_tokens"
    return reply.usage.input_tokens, reply.usage.output_tokens


def told_by_response_events(events: Sequence[Any]) -> tuple[int, int]:
    assert events[0].type == "response.created"
    assert [event.sequence_number for event in events] == list(range(len(events)))
    deltas = [event.delta for event in events if event.type == "response.output_text.delta"]
    assert "".join(deltas) == TEXT
    return told_by_response(events[-1].response)


async def test_openai_chat(clients: Clients) -> None:
    ask: Any = {"model": GPT, "messages": USER, "max_tokens": TOKENS}
    reply = await in_thread(clients.openai.chat.completions.create, **ask)
    prompt, completion = told_by_chat(reply)
    await clients.recorded(Api.CHAT, stream=False, prompt=prompt, completion=completion)
    assert reply._request_id == clients.both.it.records[0].id
    again: Any = await clients.openai_async.chat.completions.create(**ask)
    assert told_by_chat(again) == (prompt, completion)


async def test_openai_chat_streamed(clients: Clients) -> None:
    ask: Any = {"model": GPT, "messages": USER, "max_tokens": TOKENS, "stream_options": USAGE}

    def use() -> list[Any]:
        with clients.openai.chat.completions.create(**ask, stream=True) as stream:
            return list(stream)

    told = prompt, completion = told_by_chunks(await asyncio.to_thread(use))
    await clients.recorded(Api.CHAT, stream=True, prompt=prompt, completion=completion)
    async with await clients.openai_async.chat.completions.create(**ask, stream=True) as stream:
        assert told_by_chunks([chunk async for chunk in stream]) == told


async def test_openai_chat_stream_helper(clients: Clients) -> None:
    """The helper accumulates chunks; an answer that was cut short would be an error to it."""
    ask: Any = {"model": GPT, "messages": USER, "stream_options": USAGE}
    async with clients.openai_async.chat.completions.stream(**ask) as helper:
        final: Any = await helper.get_final_completion()
    assert (final.model, final.choices[0].finish_reason) == (GPT, "stop")
    text = answer.TEXT * 8
    assert final.choices[0].message.content == text[: 4 * final.usage.completion_tokens]
    assert final.usage.completion_tokens == 128


async def test_openai_chat_streamed_without_asking_for_usage(clients: Clients) -> None:
    ask: Any = {"model": GPT, "messages": USER, "max_tokens": TOKENS, "stream": True}
    async with await clients.openai_async.chat.completions.create(**ask) as stream:
        chunks = [chunk async for chunk in stream]
    assert all(chunk.choices and chunk.usage is None for chunk in chunks)
    record = await clients.both.it.record()
    assert record.usage is not None and record.usage.completion == TOKENS


async def test_openai_completions(clients: Clients) -> None:
    ask: Any = {"model": GPT, "prompt": "hi", "max_tokens": TOKENS}
    reply = await in_thread(clients.openai.completions.create, **ask)
    assert (reply.model, reply.choices[0].text) == (GPT, TEXT)
    told = prompt, completion = reply.usage.prompt_tokens, reply.usage.completion_tokens
    await clients.recorded(Api.COMPLETIONS, stream=False, prompt=prompt, completion=completion)

    def use() -> list[Any]:
        with clients.openai.completions.create(**ask, stream=True, stream_options=USAGE) as stream:
            return list(stream)

    clients.both.it.records.clear()
    assert told_by_texts(await asyncio.to_thread(use)) == told
    await clients.recorded(Api.COMPLETIONS, stream=True, prompt=prompt, completion=completion)
    ask |= {"stream": True, "stream_options": USAGE}
    async with await clients.openai_async.completions.create(**ask) as stream:
        assert told_by_texts([chunk async for chunk in stream]) == told


async def test_openai_embeddings(clients: Clients) -> None:
    ask: Any = {"model": GPT, "input": ["a cat", "a dog"]}
    reply = await in_thread(clients.openai.embeddings.create, **ask)
    assert reply.model == GPT and [one.index for one in reply.data] == [0, 1]
    assert sum(x * x for x in reply.data[0].embedding) == pytest.approx(1)
    await clients.recorded(
        Api.EMBEDDINGS, stream=False, prompt=reply.usage.prompt_tokens, completion=0
    )
    again = await clients.openai_async.embeddings.create(**ask)
    assert again.data[1].embedding == reply.data[1].embedding != reply.data[0].embedding


async def test_openai_responses(clients: Clients) -> None:
    ask: Any = {"model": GPT, "input": "hi", "max_output_tokens": TOKENS}
    told = prompt, completion = told_by_response(
        await in_thread(clients.openai.responses.create, **ask)
    )
    await clients.recorded(Api.RESPONSES, stream=False, prompt=prompt, completion=completion)
    assert told_by_response(await clients.openai_async.responses.create(**ask)) == told


async def test_openai_responses_streamed(clients: Clients) -> None:
    ask: Any = {"model": GPT, "input": "hi", "max_output_tokens": TOKENS}

    def use() -> list[Any]:
        with clients.openai.responses.create(**ask, stream=True) as stream:
            return list(stream)

    told = prompt, completion = told_by_response_events(await asyncio.to_thread(use))
    await clients.recorded(Api.RESPONSES, stream=True, prompt=prompt, completion=completion)
    async with await clients.openai_async.responses.create(**ask, stream=True) as stream:
        assert told_by_response_events([event async for event in stream]) == told


async def test_openai_responses_stream_helper(clients: Clients) -> None:
    """The helper accumulates events into the response, and raises where they do not fit."""
    ask: Any = {"model": GPT, "input": "hi", "max_output_tokens": TOKENS}

    def use() -> list[Any]:
        with clients.openai.responses.stream(**ask) as stream:
            return list(stream)

    told = told_by_response_events(await asyncio.to_thread(use))
    async with clients.openai_async.responses.stream(**ask) as stream:
        assert told_by_response_events([event async for event in stream]) == told


async def test_openai_models(clients: Clients) -> None:
    listed = await in_thread(clients.openai.models.list)
    assert [(one.id, one.object) for one in listed.data] == [("m", "model"), ("other", "model")]
    assert (await in_thread(clients.openai.models.retrieve, GPT)).id == GPT
    assert [one.id async for one in clients.openai_async.models.list()] == ["m", "other"]
    assert (await clients.openai_async.models.retrieve("m")).id == "m"
    with pytest.raises(openai.NotFoundError, match="`m`, `other`"):
        await clients.openai_async.models.retrieve("llama")
