"""Every API through the gateway says what the engine itself says, and is measured."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace

import anthropic
import openai
import pytest
from anthropic import AsyncAnthropic
from openai import AsyncOpenAI

from benchmarks.engine.serving import CONTEXT, MODEL
from gateway.records import Api
from tests.real_engine.lab import BLOCK, BUDGETS, ENGINE_KEY, Arm, Lab, each_arm, on_engine
from tests.real_engine.speaking import ASKS, PROMPT, SCHEMA, TOKENS, TOOL, USER, Speaker
from tests.support.gateway_process import KEY

pytestmark = on_engine

every_api = pytest.mark.parametrize("api", ASKS)
either_way = pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])


@asynccontextmanager
async def speaking(url: str, key: str, model: str) -> AsyncIterator[Speaker]:
    async with (
        openai.DefaultAsyncHttpxClient(trust_env=False) as http,
        anthropic.DefaultAsyncHttpxClient(trust_env=False) as http2,
        AsyncOpenAI(base_url=f"{url}/v1", api_key=key, max_retries=0, http_client=http) as one,
        AsyncAnthropic(base_url=url, auth_token=key, max_retries=0, http_client=http2) as two,
    ):
        yield Speaker(one, two, model)


@each_arm
@either_way
@every_api
async def test_an_answer_is_the_engines_own(site: Lab, arm: Arm, api: Api, stream: bool) -> None:
    model = f"m@{arm}"
    before = await site.counted(arm)
    async with speaking(site.gateway.url, KEY, model) as client:
        told = await ASKS[api](client, stream, False)
    added = await site.added(arm, before, 1)
    async with speaking(str(site.engines[arm].base_url), ENGINE_KEY, MODEL) as client:
        own = await ASKS[api](client, stream, False)

    assert told.text and told.completion == TOKENS
    assert told == replace(own, model=model)
    labels = {"arm": arm, "api": api.value}
    assert added.labelled("gateway_requests_total", **labels, outcome="ok") == 1
    first = added.labelled("gateway_time_to_first_token_seconds_count", **labels)
    assert first == stream
    assert added.labelled("gateway_completion_tokens_total", arm=arm) == TOKENS
    assert added["vllm:generation_tokens_total"] == TOKENS
    assert added["vllm:prompt_tokens_total"] == told.prompt


@either_way
@pytest.mark.parametrize("api", [Api.CHAT, Api.MESSAGES, Api.RESPONSES])
async def test_a_tool_is_called(site: Lab, api: Api, stream: bool) -> None:
    async with speaking(site.gateway.url, KEY, "m@b") as client:
        told = await ASKS[api](client, stream, True)
    ((name, arguments),) = told.calls
    if isinstance(arguments, str):
        arguments = json.loads(arguments)
    assert (name, arguments) == (TOOL, {"city": "Paris"})


async def test_a_stream_that_begins_with_a_call_has_a_first_token(site: Lab) -> None:
    tool = {"type": "function", "name": TOOL, "parameters": SCHEMA, "strict": True}
    body = {"model": "m@a", "input": PROMPT, "max_output_tokens": 100, "stream": True}
    body |= {"tools": [tool], "tool_choice": "required"}
    reply = await site.client.post("/v1/responses", json=body)
    line = await site.line(reply.headers["x-request-id"])
    assert line["outcome"] == "ok" and line["no_token"] is None
    assert line["sent_ms"] < line["first_token_ms"] <= line["last_token_ms"]


async def test_tokens_are_counted_as_the_answer_counts_them(site: Lab) -> None:
    body = {"model": "m@a", "messages": USER}
    count = await site.client.post("/v1/messages/count_tokens", json=body)
    answer = await site.client.post("/v1/messages", json=body | {"max_tokens": 1})
    assert count.json()["input_tokens"] == answer.json()["usage"]["input_tokens"] > 1


async def test_a_text_becomes_tokens_and_a_text_again(site: Lab) -> None:
    split = await site.client.post("/tokenize", json={"model": "m", "prompt": PROMPT})
    tokens = split.json()["tokens"]
    assert 1 < len(tokens) < len(PROMPT)
    joined = await site.client.post("/detokenize", json={"model": "m", "tokens": tokens})
    assert joined.json()["prompt"] == PROMPT


async def test_models_are_listed_with_what_the_engine_told_of_them(site: Lab) -> None:
    listed = (await site.client.get("/v1/models")).json()["data"]
    assert {one["id"] for one in listed} == {"m", "locked"}
    (one,) = (one for one in listed if one["id"] == "m")
    assert one["context_window"] == CONTEXT


@each_arm
async def test_what_an_engine_is_and_offers_is_found(site: Lab, arm: Arm) -> None:
    backends = (await site.gateway.admin("/backends")).json()
    (one,) = (one for one in backends if one["name"] == f"{arm}1")
    assert (one["engine_version"], one["max_model_len"]) == ("0.32.0", CONTEXT)
    assert one["apis"] == ["chat", "completions", "messages", "responses"]
    running = one["running"]
    assert (running["max_num_batched_tokens"], running["max_num_seqs"]) == (BUDGETS[arm], 32)
    assert (running["block_size"], running["prefix_caching"]) == (BLOCK, True)
