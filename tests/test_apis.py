"""Every client API through a running gateway to a simulated engine, streamed and not."""

from __future__ import annotations

import asyncio
import json
import secrets
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass, field
from typing import Any

import pytest
import pytest_asyncio

from gateway.records import Api, NoToken, Outcome, Usage
from gateway.simulator import answer
from tests.support.running import Way
from tests.support.simulated import UPSTREAM, Simulated, simulated, totals

pytestmark = pytest.mark.asyncio(loop_scope="module")

ALIAS = "gpt-4o-mini"
TOKENS = 6
TEXT = answer.TEXT[: 4 * TOKENS]
USER = [{"role": "user", "content": "hi"}]


@dataclass(frozen=True)
class Asked:
    """One API: where it is, what is asked, and which field caps the answer."""

    path: str
    api: Api
    body: dict[str, Any] = field(repr=False)
    cap: str = ""

    def request(self, model: str = ALIAS, tokens: int = TOKENS, **more: Any) -> dict[str, Any]:
        cap = {self.cap: tokens} if self.cap else {}
        return {"model": model, **self.body, **cap, **more}

    def about(self, prompt: str) -> Asked:
        """The same with another prompt."""
        name = next(name for name in ("messages", "input", "prompt") if name in self.body)
        body: Any = [{"role": "user", "content": prompt}] if name == "messages" else prompt
        return Asked(self.path, self.api, {name: body}, self.cap)

    def __str__(self) -> str:
        return self.path.removeprefix("/v1/")


STREAMING = [
    Asked("/v1/chat/completions", Api.CHAT, {"messages": USER}, "max_completion_tokens"),
    Asked("/v1/completions", Api.COMPLETIONS, {"prompt": "hi"}, "max_tokens"),
    Asked("/v1/messages", Api.MESSAGES, {"messages": USER}, "max_tokens"),
    Asked("/v1/responses", Api.RESPONSES, {"input": "hi"}, "max_output_tokens"),
]
WHOLE = [
    *STREAMING,
    Asked("/v1/embeddings", Api.EMBEDDINGS, {"input": ["a cat", "a dog"]}),
    Asked("/v1/rerank", Api.OTHER, {"query": "cat", "documents": ["a dog", "a cat"]}),
    Asked("/v1/score", Api.OTHER, {"text_1": "a cat", "text_2": ["a cat", "a dog"]}),
]
NAMELESS = [
    Asked("/tokenize", Api.OTHER, {"prompt": "a cat"}),
    Asked("/tokenize", Api.OTHER, {"messages": USER}),
    Asked("/detokenize", Api.OTHER, {"tokens": answer.TOKENS[:3].tolist()}),
    Asked("/v1/messages/count_tokens", Api.OTHER, {"messages": USER}),
]

streaming = pytest.mark.parametrize("asked", STREAMING, ids=str)


@pytest_asyncio.fixture(scope="module", loop_scope="module", params=["protocol", "asgi"])
async def fast(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[Simulated]:
    """A gateway by either writer, before an engine a hundred times as fast as a real one."""
    way: Way = request.param
    async with simulated(tmp_path_factory.mktemp("fast"), way=way) as both:
        yield both


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def real(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Simulated]:
    """With an engine as fast as a real one: 9 ms a token, a prompt's token 74 µs."""
    engine = {"speed": 1.0, "answer_tokens": 10_000}
    async with simulated(tmp_path_factory.mktemp("real"), engine=engine) as both:
        yield both


@pytest.fixture
def site(fast: Simulated) -> Simulated:
    """The fast one, without the records of other tests."""
    fast.it.records.clear()
    return fast


@pytest.fixture
def steady(real: Simulated) -> Simulated:
    """The one at a real speed, without the records of other tests."""
    real.it.records.clear()
    return real


@pytest.fixture
def long_prompt() -> str:
    """About 1,600 tokens that no other test has sent, so that none of them is cached."""
    return secrets.token_hex(16) + " word" * 1280


@pytest.mark.parametrize("asked", WHOLE, ids=str)
async def test_a_whole_reply_is_the_engines_under_the_clients_name(
    site: Simulated, asked: Asked
) -> None:
    direct = await site.engine.post(asked.path, **asked.request(UPSTREAM))
    response = await site.it.client.post(asked.path, json=asked.request())
    assert response.status_code == 200, response.text
    reply = response.json()
    assert reply["model"] == ALIAS
    assert UPSTREAM not in response.text
    assert lasting(reply) == lasting(direct.json() | {"model": ALIAS})
    record = await site.it.record()
    assert (record.api, record.path, record.outcome) == (asked.api, asked.path, Outcome.OK)
    assert (record.model, record.requested_model, record.stream) == ("m", ALIAS, False)
    assert record.usage is not None and record.usage == usage_in([reply])
    assert record.usage.prompt > 0
    assert record.usage.completion == (TOKENS if asked.cap else 0)
    assert record.timeline.first_token is None and record.no_token is None


@pytest.mark.parametrize("asked", NAMELESS, ids=str)
async def test_what_names_no_model_is_the_engines_reply(site: Simulated, asked: Asked) -> None:
    direct = await site.engine.post(asked.path, **asked.request(UPSTREAM))
    response = await site.it.client.post(asked.path, json=asked.request())
    assert (response.status_code, response.json()) == (200, direct.json())
    record = await site.it.record()
    assert (record.api, record.model, record.outcome) == (Api.OTHER, "m", Outcome.OK)
    assert record.usage is None


@streaming
async def test_a_stream_is_the_engines_under_the_clients_name(
    site: Simulated, asked: Asked
) -> None:
    response = await site.it.client.post(asked.path, json=asked.request(stream=True))
    assert response.status_code == 200, response.text
    assert response.headers["content-type"].startswith("text/event-stream")
    events = parsed(response.text)
    named = list(models_in(events))
    assert named and set(named) == {ALIAS}
    assert text_in(events) == TEXT
    record = await site.it.record()
    assert (record.api, record.outcome, record.stream) == (asked.api, Outcome.OK, True)
    direct = (await site.engine.post(asked.path, **asked.request(UPSTREAM))).json()
    assert record.usage is not None and record.usage == usage_in([direct])
    assert record.usage.completion == TOKENS
    if asked.api in (Api.CHAT, Api.COMPLETIONS):
        assert usage_in(events) is None, "the client did not ask for usage"
    else:
        assert usage_in(events) == record.usage


async def test_models(site: Simulated) -> None:
    client = site.it.client
    async with asyncio.timeout(5):
        while (
            "context_window" not in (listed := (await client.get("/v1/models")).json())["data"][0]
        ):
            await asyncio.sleep(0.02)
    assert listed["object"] == "list"
    assert [(one["id"], one["object"]) for one in listed["data"]] == [("m", "model")]
    assert listed["data"][0]["context_window"] == 131_072, "as the engine told"
    assert (await client.get("/v1/models/m")).json() == listed["data"][0]
    aliased = (await client.get(f"/v1/models/{ALIAS}")).json()
    assert aliased == listed["data"][0] | {"id": ALIAS}
    anthropic = await client.get("/v1/models", headers={"anthropic-version": "2023-06-01"})
    assert [(one["id"], one["type"]) for one in anthropic.json()["data"]] == [("m", "model")]


@streaming
async def test_ttft_is_when_the_engine_generated_and_not_when_it_first_spoke(
    steady: Simulated, asked: Asked, long_prompt: str
) -> None:
    """The prompt is computed in about 0.13 s."""
    before = await totals(steady)
    request = asked.about(long_prompt).request(tokens=3, stream=True)
    response = await steady.it.client.post(asked.path, json=request)
    assert response.status_code == 200
    line = (await steady.it.record()).timeline
    assert line.body_complete and line.sent and line.first_byte
    assert line.first_token and line.last_token and line.done
    assert line.first_byte <= line.first_token < line.last_token <= line.done
    if asked.api is Api.RESPONSES:
        assert "response.created" in response.text.split("\n\n")[0]
        assert line.first_token - line.first_byte > 0.1, "response.created stopped the clock"
    came = await totals(steady) - before
    seen = line.first_token - line.sent
    engine = came["vllm:time_to_first_token_seconds_sum"]
    assert 0.1 < engine <= seen < engine + 0.2
    for name, seconds in (
        ("time_to_first_token", line.first_token - line.body_complete),
        ("upstream_time_to_first_token", seen),
    ):
        name = f"gateway_{name}_seconds"
        api = {"model": "m", "arm": "a0", "backend": "b0", "api": asked.api}
        assert came.labelled(f"{name}_count", **api) == came[f"{name}_count"] == 1
        assert came[f"{name}_sum"] == pytest.approx(seconds, abs=1e-6)


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
@streaming
async def test_cached_tokens_are_those_the_engine_counted(
    site: Simulated, asked: Asked, stream: bool, long_prompt: str
) -> None:
    before = await totals(site)
    request = asked.about(long_prompt).request(stream=stream)
    for _ in range(2):
        assert (await site.it.client.post(asked.path, json=request)).status_code == 200
    await site.it.record(2)
    first, second = (record.usage for record in site.it.records)
    assert first is not None and second is not None
    assert first.cached == 0
    block = 16
    assert second.cached == (second.prompt - 1) // block * block > 1000
    assert second == Usage(first.prompt, second.cached, TOKENS)
    came = await totals(site) - before
    for ours, engines, tokens in (
        ("prompt", "prompt", first.prompt + second.prompt),
        ("cached_prompt", "prompt_tokens_cached", second.cached),
        ("completion", "generation", 2 * TOKENS),
    ):
        engines = engines if engines.endswith("cached") else f"{engines}_tokens"
        assert came[f"vllm:{engines}_total"] == tokens
        served = {"model": "m", "arm": "a0", "backend": "b0"}
        assert came.labelled(f"gateway_{ours}_tokens_total", **served) == tokens
    assert came["vllm:prefix_cache_hits_total"] == second.cached


@streaming
async def test_a_client_that_leaves_frees_its_place_in_the_engine(
    steady: Simulated, asked: Asked
) -> None:
    before = await totals(steady)
    request = asked.request(tokens=8000, stream=True)
    client = steady.it.client
    async with client.stream("POST", asked.path, json=request) as response:
        lines = response.aiter_lines()
        while answer.TEXT[:4].strip() not in await anext(lines):
            pass
        assert (await totals(steady))["vllm:num_requests_running"] == 1
        await response.aclose()
        await steady.engine.until(running=0)  # or it fails after 0.5 s
    now = await totals(steady)
    assert now["vllm:num_requests_running"] == 0
    record = await steady.it.record()
    assert (record.outcome, record.no_token) == (Outcome.CLIENT_GONE, None)
    assert record.usage is not None and not record.usage.exact
    generated = (now - before)["vllm:generation_tokens_total"]
    assert 1 <= record.usage.completion <= generated < 8000
    assert (await totals(steady))["gateway_requests_in_flight"] == 0


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
@streaming
async def test_a_client_that_leaves_before_the_first_token_frees_its_place_too(
    steady: Simulated, asked: Asked, stream: bool, long_prompt: str
) -> None:
    """The prompt takes more than two seconds."""
    before = await totals(steady)
    request = asked.about(long_prompt * 16).request(stream=stream)
    sent = asyncio.ensure_future(steady.it.client.post(asked.path, json=request))
    async with asyncio.timeout(2):
        while not steady.engine.engine.scheduler.running:
            await asyncio.sleep(0.005)
    sent.cancel()
    await steady.engine.until(running=0)
    record = await steady.it.record()
    assert record.outcome is Outcome.CLIENT_GONE
    assert record.no_token is (NoToken.CLIENT_GONE if stream else None)
    assert (await totals(steady) - before)["vllm:generation_tokens_total"] == 0


# Reading replies


def lasting(reply: Any) -> Any:
    """The reply without what differs each time."""
    passing = {"id", "created", "created_at"}
    if isinstance(reply, dict):
        return {name: lasting(value) for name, value in reply.items() if name not in passing}
    return [lasting(one) for one in reply] if isinstance(reply, list) else reply


def parsed(stream: str) -> list[dict[str, Any]]:
    """The data of each event."""
    assert stream.endswith("\n\n")
    frames = stream.removesuffix("\n\n").split("\n\n")
    data = [frame.partition("data: ")[2] for frame in frames]
    return [json.loads(one) for one in data if one != "[DONE]"]


def models_in(value: Any) -> Iterator[str]:
    """Every `model`, however deep."""
    if isinstance(value, dict):
        if "model" in value:
            yield value["model"]
        value = list(value.values())
    if isinstance(value, list):
        for one in value:
            yield from models_in(one)


def text_in(events: list[dict[str, Any]]) -> str:
    """What was generated."""
    text = ""
    for event in events:
        for choice in event.get("choices", ()):
            text += choice.get("text") or choice.get("delta", {}).get("content") or ""
        delta = event.get("delta", "")
        text += delta.get("text", "") if isinstance(delta, dict) else delta
    return text


def usage_in(events: list[dict[str, Any]]) -> Usage | None:
    """The last usage stated, in whichever API's form."""
    found = None
    for event in events:
        block = event.get("usage") or event.get("response", {}).get("usage")
        if block and "input_tokens_details" in block:
            cached = block["input_tokens_details"]["cached_tokens"]
            found = Usage(block["input_tokens"], cached, block["output_tokens"])
        elif block and "input_tokens" in block:
            cached = block["cache_read_input_tokens"]
            found = Usage(block["input_tokens"] + cached, cached, block["output_tokens"])
        elif block:
            cached = block.get("prompt_tokens_details", {}).get("cached_tokens", 0)
            prompt = block.get("prompt_tokens", block["total_tokens"])
            found = Usage(prompt, cached, block.get("completion_tokens", 0))
    return found
