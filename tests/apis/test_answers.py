"""Answers are the engine's, under the name the client knows; and recorded as they were."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from typing import Any

import pytest

from gateway.records import Api, Outcome, Usage
from tests.apis.asked import ALIAS, NAMELESS, TEXT, TOKENS, WHOLE, Asked, streaming
from tests.support.simulated import UPSTREAM, Simulated

pytestmark = pytest.mark.asyncio(loop_scope="module")


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
