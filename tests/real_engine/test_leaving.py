"""A client that leaves frees its place in the engine, at whatever time it leaves."""

from __future__ import annotations

import asyncio
from typing import Any

import httpx
import pytest

from benchmarks.engine.prompts import prompt
from tests.real_engine.lab import Arm, Lab, each_arm, on_engine
from tests.support.simulated import Totals

pytestmark = on_engine

LONG = 8000
"""Tokens of an answer: more than a minute's work for these engines."""
SOON = 10.0
"""Seconds within which the engine must be free. It was in 0.4 to 1.3 s, and in 5 s where seven
other processes wanted each core."""

USER = [{"role": "user", "content": "hi"}]
REQUESTS: dict[str, dict[str, Any]] = {
    "/v1/chat/completions": {"messages": USER, "max_tokens": LONG, "ignore_eos": True},
    "/v1/completions": {"prompt": "hi", "max_tokens": LONG, "ignore_eos": True},
    # Cannot be told to ignore an end; its most likely words go round in a circle.
    "/v1/messages": {"messages": USER, "max_tokens": LONG, "temperature": 0},
    "/v1/responses": {"input": USER, "max_output_tokens": LONG, "ignore_eos": True},
}
every_path = pytest.mark.parametrize("path", REQUESTS)


async def expect_free(site: Lab, arm: Arm) -> None:
    took = await site.until_running(arm, lambda load: load == 0, within=SOON)
    print(f"the engine was free after {took:.2f} s")


async def expect_gone(site: Lab, reply_to: str) -> None:
    line = await site.line(reply_to)
    assert (line["outcome"], line["usage_exact"]) == ("client_gone", False)


@each_arm
@every_path
async def test_amid_a_stream(site: Lab, arm: Arm, path: str) -> None:
    body = {"model": f"m@{arm}", "stream": True, **REQUESTS[path]}
    async with site.client.stream("POST", path, json=body) as reply:
        assert reply.status_code == 200
        deltas = 0
        # Held, since a generator that is given up closes the connection.
        lines = reply.aiter_lines()
        async for one in lines:
            deltas += one.startswith("data: ")
            if deltas == 12:
                break
        await site.until_running(arm, lambda load: load == 1, within=10)
    await expect_free(site, arm)
    await expect_gone(site, reply.headers["x-request-id"])


@each_arm
@every_path
async def test_before_a_whole_answer(site: Lab, arm: Arm, path: str) -> None:
    body = {"model": f"m@{arm}", **REQUESTS[path]}
    before = len(site.gateway.lines)
    asking = asyncio.create_task(site.client.post(path, json=body))
    await site.until_running(arm, lambda load: load == 1, within=30)
    asking.cancel()
    await expect_free(site, arm)
    async with asyncio.timeout(10):
        while len(site.gateway.lines) == before:
            await asyncio.sleep(0.05)
    assert site.gateway.lines[-1]["outcome"] == "client_gone"


@each_arm
async def test_before_the_first_token(site: Lab, arm: Arm) -> None:
    """A prompt that has been read before the client could leave tells nothing: the next is tried.

    Reading takes the engine about a second. Without the leaving it reads each to its end.
    """
    generated = [1.0]
    while generated[-1] and len(generated) <= 5:
        added = await _leave_while_reading(site, arm, f"left {arm} {len(generated)}")
        generated.append(added["vllm:generation_tokens_total"])
    assert generated[-1] == 0, f"each prompt was read to its end: {generated[1:]}"


async def _leave_while_reading(site: Lab, arm: Arm, name: str) -> Totals:
    """What was counted until the engine was free again."""
    tokens = prompt(name, 12_000)
    body = {"model": f"m@{arm}", "prompt": tokens, "max_tokens": 8, "stream": True}
    before = await site.counted(arm)
    asking = asyncio.create_task(site.client.post("/v1/completions", json=body))
    await site.until_running(arm, lambda load: load == 1, within=30)
    asking.cancel()
    await expect_free(site, arm)
    return await site.counted(arm) - before


async def test_a_full_engine_has_room_again(site: Lab) -> None:
    """All 32 places are taken, one more request waits; when all leave, the next is answered."""
    body = {"model": "m@b", "prompt": "hi", "max_tokens": LONG, "ignore_eos": True}
    asking = [
        asyncio.create_task(site.client.post("/v1/completions", json=body)) for _ in range(33)
    ]
    await site.until_running("b", lambda load: load == 33, within=60)
    assert (await site.counted("b"))["vllm:num_requests_waiting"] == 1
    for one in asking:
        one.cancel()
    await asyncio.gather(*asking, return_exceptions=True)
    await expect_free(site, "b")
    reply: httpx.Response = await site.client.post(
        "/v1/completions", json=body | {"max_tokens": 1}, timeout=10
    )
    assert reply.status_code == 200
