"""The official Python SDKs of OpenAI and Anthropic against a running gateway, as users have them.

They check replies against types of their own, keep the state of streams, and choose an exception
by what an error reply says; bytes that look right in another test may fail here.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import anthropic
import openai
import pytest
import pytest_asyncio
from anthropic import Anthropic, AsyncAnthropic
from openai import AsyncOpenAI, OpenAI

from gateway.records import Api, Outcome
from gateway.simulator import answer
from tests.support.apis import DIALECTS, Dialect
from tests.support.running import KEY, configuration, running
from tests.support.scripted import scripted
from tests.support.simulated import Simulated, simulated
from tests.support.site import hangs_up, streams

pytestmark = pytest.mark.asyncio(loop_scope="module")

GPT, CLAUDE = "gpt-4o-mini", "claude-local"
TOKENS = 6
TEXT = answer.TEXT[: 4 * TOKENS]
USER: Any = [{"role": "user", "content": "hi"}]
USAGE: Any = {"include_usage": True}

NARROW_KEY = "sk-narrow-0123456789abcdefghijkl"
SLOW_KEY = "sk-slow-0123456789abcdefghijklm"
WRONG_KEY = "sk-wrong-0123456789abcdefghijkl"


@dataclass
class Site:
    """A gateway, and the four clients with the key that may do anything."""

    both: Simulated
    openai: OpenAI
    openai_async: AsyncOpenAI
    anthropic: Anthropic
    anthropic_async: AsyncAnthropic

    async def recorded(self, api: Api, *, stream: bool, prompt: int, completion: int) -> None:
        """The gateway has recorded the only request as such."""
        record = await self.both.it.record()
        assert len(self.both.it.records) == 1
        assert (record.api, record.stream, record.outcome) == (api, stream, Outcome.OK)
        assert record.usage is not None and prompt > 0
        assert (record.usage.prompt, record.usage.completion) == (prompt, completion)
        assert (record.timeline.first_token is not None) == stream


@pytest.fixture(scope="module")
def no_environment() -> Any:
    """No proxy, and nothing else the SDKs would take from the environment."""
    with pytest.MonkeyPatch.context() as patch:
        for name in list(os.environ):
            if name.lower().endswith("_proxy") or name.startswith(("OPENAI_", "ANTHROPIC_")):
                patch.delenv(name)
        yield


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def everything(
    no_environment: None, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[Site]:
    keys = [
        {"name": "dev", "key": KEY},
        {"name": "narrow", "key": NARROW_KEY, "models": ["m"]},
        {"name": "slow", "key": SLOW_KEY, "requests_per_minute": 1},
    ]
    path = tmp_path_factory.mktemp("sdks")
    async with simulated(path, also=["other"], keys=keys) as both:
        url = both.it.url
        with (
            OpenAI(base_url=f"{url}/v1", api_key=KEY, max_retries=0) as one,
            Anthropic(base_url=url, api_key=KEY, max_retries=0) as three,
        ):
            async with (
                AsyncOpenAI(base_url=f"{url}/v1", api_key=KEY, max_retries=0) as two,
                AsyncAnthropic(base_url=url, api_key=KEY, max_retries=0) as four,
            ):
                yield Site(both, one, two, three, four)


@pytest.fixture
def site(everything: Site) -> Site:
    everything.both.it.records.clear()
    return everything


async def in_thread(call: Any, *arguments: Any, **options: Any) -> Any:
    """Have a blocking client call the gateway, which runs in this thread."""
    return await asyncio.to_thread(call, *arguments, **options)


# OpenAI


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


async def test_openai_chat(site: Site) -> None:
    ask: Any = {"model": GPT, "messages": USER, "max_tokens": TOKENS}
    reply = await in_thread(site.openai.chat.completions.create, **ask)
    prompt, completion = told_by_chat(reply)
    await site.recorded(Api.CHAT, stream=False, prompt=prompt, completion=completion)
    assert reply._request_id == site.both.it.records[0].id
    again: Any = await site.openai_async.chat.completions.create(**ask)
    assert told_by_chat(again) == (prompt, completion)


async def test_openai_chat_streamed(site: Site) -> None:
    ask: Any = {"model": GPT, "messages": USER, "max_tokens": TOKENS, "stream_options": USAGE}

    def use() -> list[Any]:
        with site.openai.chat.completions.create(**ask, stream=True) as stream:
            return list(stream)

    told = prompt, completion = told_by_chunks(await asyncio.to_thread(use))
    await site.recorded(Api.CHAT, stream=True, prompt=prompt, completion=completion)
    async with await site.openai_async.chat.completions.create(**ask, stream=True) as stream:
        assert told_by_chunks([chunk async for chunk in stream]) == told


async def test_openai_chat_stream_helper(site: Site) -> None:
    """The helper accumulates chunks; an answer that was cut short would be an error to it."""
    ask: Any = {"model": GPT, "messages": USER, "stream_options": USAGE}
    async with site.openai_async.chat.completions.stream(**ask) as helper:
        final: Any = await helper.get_final_completion()
    assert (final.model, final.choices[0].finish_reason) == (GPT, "stop")
    text = answer.TEXT * 8
    assert final.choices[0].message.content == text[: 4 * final.usage.completion_tokens]
    assert final.usage.completion_tokens == 128


async def test_openai_chat_streamed_without_asking_for_usage(site: Site) -> None:
    ask: Any = {"model": GPT, "messages": USER, "max_tokens": TOKENS, "stream": True}
    async with await site.openai_async.chat.completions.create(**ask) as stream:
        chunks = [chunk async for chunk in stream]
    assert all(chunk.choices and chunk.usage is None for chunk in chunks)
    record = await site.both.it.record()
    assert record.usage is not None and record.usage.completion == TOKENS


async def test_openai_completions(site: Site) -> None:
    ask: Any = {"model": GPT, "prompt": "hi", "max_tokens": TOKENS}
    reply = await in_thread(site.openai.completions.create, **ask)
    assert (reply.model, reply.choices[0].text) == (GPT, TEXT)
    told = prompt, completion = reply.usage.prompt_tokens, reply.usage.completion_tokens
    await site.recorded(Api.COMPLETIONS, stream=False, prompt=prompt, completion=completion)

    def use() -> list[Any]:
        with site.openai.completions.create(**ask, stream=True, stream_options=USAGE) as stream:
            return list(stream)

    site.both.it.records.clear()
    assert told_by_texts(await asyncio.to_thread(use)) == told
    await site.recorded(Api.COMPLETIONS, stream=True, prompt=prompt, completion=completion)
    ask |= {"stream": True, "stream_options": USAGE}
    async with await site.openai_async.completions.create(**ask) as stream:
        assert told_by_texts([chunk async for chunk in stream]) == told


async def test_openai_embeddings(site: Site) -> None:
    ask: Any = {"model": GPT, "input": ["a cat", "a dog"]}
    reply = await in_thread(site.openai.embeddings.create, **ask)
    assert reply.model == GPT and [one.index for one in reply.data] == [0, 1]
    assert sum(x * x for x in reply.data[0].embedding) == pytest.approx(1)
    await site.recorded(
        Api.EMBEDDINGS, stream=False, prompt=reply.usage.prompt_tokens, completion=0
    )
    again = await site.openai_async.embeddings.create(**ask)
    assert again.data[1].embedding == reply.data[1].embedding != reply.data[0].embedding


async def test_openai_responses(site: Site) -> None:
    ask: Any = {"model": GPT, "input": "hi", "max_output_tokens": TOKENS}
    told = prompt, completion = told_by_response(
        await in_thread(site.openai.responses.create, **ask)
    )
    await site.recorded(Api.RESPONSES, stream=False, prompt=prompt, completion=completion)
    assert told_by_response(await site.openai_async.responses.create(**ask)) == told


async def test_openai_responses_streamed(site: Site) -> None:
    ask: Any = {"model": GPT, "input": "hi", "max_output_tokens": TOKENS}

    def use() -> list[Any]:
        with site.openai.responses.create(**ask, stream=True) as stream:
            return list(stream)

    told = prompt, completion = told_by_response_events(await asyncio.to_thread(use))
    await site.recorded(Api.RESPONSES, stream=True, prompt=prompt, completion=completion)
    async with await site.openai_async.responses.create(**ask, stream=True) as stream:
        assert told_by_response_events([event async for event in stream]) == told


async def test_openai_responses_stream_helper(site: Site) -> None:
    """The helper accumulates events into the response, and raises where they do not fit."""
    ask: Any = {"model": GPT, "input": "hi", "max_output_tokens": TOKENS}

    def use() -> list[Any]:
        with site.openai.responses.stream(**ask) as stream:
            return list(stream)

    told = told_by_response_events(await asyncio.to_thread(use))
    async with site.openai_async.responses.stream(**ask) as stream:
        assert told_by_response_events([event async for event in stream]) == told


async def test_openai_models(site: Site) -> None:
    listed = await in_thread(site.openai.models.list)
    assert [(one.id, one.object) for one in listed.data] == [("m", "model"), ("other", "model")]
    assert (await in_thread(site.openai.models.retrieve, GPT)).id == GPT
    assert [one.id async for one in site.openai_async.models.list()] == ["m", "other"]
    assert (await site.openai_async.models.retrieve("m")).id == "m"
    with pytest.raises(openai.NotFoundError, match="`m`, `other`"):
        await site.openai_async.models.retrieve("llama")


# Anthropic


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


async def test_anthropic_messages(site: Site) -> None:
    ask: Any = {"model": CLAUDE, "messages": USER, "max_tokens": TOKENS}
    reply = await in_thread(site.anthropic.messages.create, **ask)
    told = prompt, completion = told_by_message(reply)
    await site.recorded(Api.MESSAGES, stream=False, prompt=prompt, completion=completion)
    assert told_by_message(await site.anthropic_async.messages.create(**ask)) == told


async def test_anthropic_messages_streamed(site: Site) -> None:
    ask: Any = {"model": CLAUDE, "messages": USER, "max_tokens": TOKENS}

    def use() -> list[Any]:
        with site.anthropic.messages.create(**ask, stream=True) as stream:
            return list(stream)

    told = prompt, completion = told_by_message_events(await asyncio.to_thread(use))
    await site.recorded(Api.MESSAGES, stream=True, prompt=prompt, completion=completion)
    async with await site.anthropic_async.messages.create(**ask, stream=True) as stream:
        assert told_by_message_events([event async for event in stream]) == told


async def test_anthropic_messages_stream_helper(site: Site) -> None:
    ask: Any = {"model": CLAUDE, "messages": USER, "max_tokens": TOKENS}

    def use() -> tuple[str, Any]:
        with site.anthropic.messages.stream(**ask) as stream:
            return "".join(stream.text_stream), stream.get_final_message()

    text, final = await asyncio.to_thread(use)
    assert text == TEXT
    told = told_by_message(final)
    async with site.anthropic_async.messages.stream(**ask) as stream:
        assert "".join([piece async for piece in stream.text_stream]) == TEXT
        assert told_by_message(await stream.get_final_message()) == told


async def test_anthropic_count_tokens(site: Site) -> None:
    ask: Any = {"model": CLAUDE, "messages": USER}
    counted = await in_thread(site.anthropic.messages.count_tokens, **ask)
    reply = await site.anthropic_async.messages.create(**ask, max_tokens=1)
    assert counted.input_tokens == reply.usage.input_tokens > 0
    assert await site.anthropic_async.messages.count_tokens(**ask) == counted


async def test_anthropic_models(site: Site) -> None:
    listed = await in_thread(site.anthropic.models.list)
    assert [(one.id, one.type) for one in listed.data] == [("m", "model"), ("other", "model")]
    assert not listed.has_more and listed.data[0].created_at.year == 1970
    assert [one.id async for one in site.anthropic_async.models.list()] == ["m", "other"]
    assert (await site.anthropic_async.models.retrieve(CLAUDE)).id == CLAUDE


# Errors


def chat(site: Site, key: str, model: str, stream: bool, body: Any) -> None:
    site.openai.with_options(api_key=key).chat.completions.create(
        model=model, messages=USER, stream=stream, extra_body=body
    )


def completions(site: Site, key: str, model: str, stream: bool, body: Any) -> None:
    site.openai.with_options(api_key=key).completions.create(
        model=model, prompt="hi", stream=stream, extra_body=body
    )


def responses(site: Site, key: str, model: str, stream: bool, body: Any) -> None:
    site.openai.with_options(api_key=key).responses.create(
        model=model, input="hi", stream=stream, extra_body=body
    )


def messages(site: Site, key: str, model: str, stream: bool, body: Any) -> None:
    site.anthropic.with_options(api_key=key).messages.create(
        model=model, messages=USER, max_tokens=1, stream=stream, extra_body=body
    )


def bearing(site: Site, key: str, model: str, stream: bool, body: Any) -> None:
    """As Claude Code does with ANTHROPIC_AUTH_TOKEN."""
    client = Anthropic(base_url=site.both.it.url, auth_token=key, max_retries=0)
    with client:
        client.messages.create(
            model=model, messages=USER, max_tokens=1, stream=stream, extra_body=body
        )


Ask = Callable[[Site, str, str, bool, Any], None]


@dataclass(frozen=True)
class Refusal:
    """What is wrong with a request, the SDKs' exception for it, and what it tells."""

    exception: str
    status: int
    says: str
    key: str = KEY
    model: str = "m"
    body: Any = None

    def __str__(self) -> str:
        return f"{self.exception}-{self.status}"


REFUSALS = [
    Refusal("AuthenticationError", 401, "key", key=WRONG_KEY),
    Refusal("NotFoundError", 404, "Models for this key: `m`.", key=NARROW_KEY, model="llama"),
    Refusal("PermissionDeniedError", 403, "`m`", key=NARROW_KEY, model="other"),
    Refusal("BadRequestError", 400, "model", body={"model": 7}),
    Refusal("BadRequestError", 400, "stream", body={"stream": "yes"}),
    Refusal("BadRequestError", 400, "ignore_eos", body={"ignore_eos": "maybe"}),
]


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
@pytest.mark.parametrize("refusal", REFUSALS, ids=str)
@pytest.mark.parametrize("ask", [chat, completions, responses, messages, bearing])
async def test_refusals(site: Site, ask: Ask, refusal: Refusal, stream: bool) -> None:
    await refused(site, ask, refusal, stream)
    record = await site.both.it.record()
    assert record.outcome is Outcome.REJECTED


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
@pytest.mark.parametrize("ask", [chat, completions, responses, messages])
async def test_a_key_over_its_limit(site: Site, ask: Ask, stream: bool) -> None:
    """The first of these requests may be the one it has."""
    first = {"authorization": f"Bearer {SLOW_KEY}"}
    body = {"model": "m", "messages": USER, "max_tokens": 1}
    await site.both.it.client.post("/v1/chat/completions", json=body, headers=first)
    limit = Refusal("RateLimitError", 429, "`slow`", key=SLOW_KEY)
    error = await refused(site, ask, limit, stream)
    assert 1 <= float(error.response.headers["retry-after"]) <= 60
    assert error.response.headers["x-ratelimit-remaining-requests"] == "0"


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
@pytest.mark.parametrize("ask", [chat, completions, responses, messages])
async def test_no_backend(site: Site, ask: Ask, stream: bool) -> None:
    backend = site.both.it.gateway.context.table.backends["b0"]
    backend.enabled = False
    try:
        error = await refused(site, ask, Refusal("InternalServerError", 503, "m"), stream)
    finally:
        backend.enabled = True
    message = error.response.json()["error"]["message"]
    assert "b0" not in message and "127.0.0.1" not in message
    assert (await site.both.it.record()).outcome is Outcome.BACKEND_ERROR


async def refused(site: Site, ask: Ask, refusal: Refusal, stream: bool) -> Any:
    """The exception, which is the SDK's own for it and says what the gateway wants said."""
    sdk: Any = anthropic if ask in (messages, bearing) else openai
    with pytest.raises(getattr(sdk, refusal.exception)) as caught:
        await asyncio.to_thread(ask, site, refusal.key, refusal.model, stream, refusal.body)
    error: Any = caught.value
    assert error.status_code == refusal.status
    assert refusal.says in error.message
    request_id = error.response.headers["x-request-id"]
    assert request_id == (await site.both.it.record()).id
    if sdk is openai:
        assert error.request_id == request_id and error.type
    else:
        assert error.body["type"] == "error" and error.body["request_id"] == request_id
    return error


# A stream that breaks off


@pytest.mark.parametrize("dialect", DIALECTS, ids=lambda one: one.api)
async def test_a_stream_that_breaks_off_does_not_pass_for_a_whole_one(
    no_environment: None, dialect: Dialect, tmp_path: Path
) -> None:
    part = streams(*dialect.opening, dialect.tokens[0], then=hangs_up)
    async with (
        scripted(part) as backend,
        running(configuration(tmp_path, backend.url), tmp_path) as it,
    ):
        seen, failure = await asyncio.to_thread(broken, dialect.api, it.url)
        assert seen == ["a"]
        assert "b0" not in failure and "127.0.0.1" not in failure
        record = await it.record()
        assert record.outcome is Outcome.BACKEND_ERROR
        assert record.error == failure


def broken(api: Api, url: str) -> tuple[list[str], str]:
    """The text of a stream and how the SDK tells that it is not all."""
    seen: list[str] = []
    if api is Api.MESSAGES:
        with Anthropic(base_url=url, api_key=KEY, max_retries=0) as claude:
            stream = claude.messages.stream(model="m", messages=USER, max_tokens=9)
            with pytest.raises(anthropic.APIStatusError) as caught, stream as message:
                seen += message.text_stream
            body: Any = caught.value.body
            return seen, body["error"]["message"]
    with OpenAI(base_url=f"{url}/v1", api_key=KEY, max_retries=0) as client:
        if api is Api.RESPONSES:
            with client.responses.stream(model="m", input="hi") as response:
                events: list[Any] = list(response)
            assert events[-1].type == "response.failed"
            seen += [one.delta for one in events if one.type == "response.output_text.delta"]
            return seen, events[-1].response.error.message
        with pytest.raises(openai.APIError) as error:
            if api is Api.CHAT:
                for chunk in client.chat.completions.create(model="m", messages=USER, stream=True):
                    seen += [chunk.choices[0].delta.content or ""]
            else:
                for text in client.completions.create(model="m", prompt="hi", stream=True):
                    seen += [text.choices[0].text]
        return [one for one in seen if one], error.value.message
