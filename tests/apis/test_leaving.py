"""Clients that leave, and the place in the engine that they free."""

from __future__ import annotations

import asyncio

import pytest

from gateway.records import NoToken, Outcome
from gateway.simulator import answer
from tests.apis.asked import Asked, streaming
from tests.support.simulated import Simulated, totals

pytestmark = pytest.mark.asyncio(loop_scope="module")


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
