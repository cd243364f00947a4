"""The gateway's figures and the engine's own, of the same requests."""

from __future__ import annotations

from typing import Any

import pytest

from benchmarks.engine.client import complete
from benchmarks.engine.prompts import prompt
from tests.real_engine.lab import BLOCK, Arm, Lab, each_arm, on_engine

pytestmark = on_engine

LENGTH = 1000
TEXT = "import sys, os, re\n" * 200


def cached(usage: dict[str, Any]) -> int:
    """Cached tokens by any API's usage."""
    details = usage.get("prompt_tokens_details") or usage.get("input_tokens_details") or {}
    found: int = details.get("cached_tokens") or usage.get("cache_read_input_tokens") or 0
    return found


USER = [{"role": "user", "content": TEXT}]
BODIES: dict[str, dict[str, Any]] = {
    "/v1/chat/completions": {"messages": USER, "max_tokens": 1},
    "/v1/completions": {"prompt": TEXT, "max_tokens": 1},
    "/v1/messages": {"messages": USER, "max_tokens": 1},
    "/v1/responses": {"input": USER, "max_output_tokens": 1},
}


@each_arm
@pytest.mark.parametrize("path", BODIES)
async def test_cached_tokens_are_those_of_the_engine(site: Lab, arm: Arm, path: str) -> None:
    """Of usage as clients read it, of the gateway's counters, and of the engine's."""
    body = {"model": f"m@{arm}", **BODIES[path]}
    await site.client.post(path, json=body)
    before = await site.counted(arm)
    reply = await site.client.post(path, json=body)
    added = await site.added(arm, before, 1)
    found = cached(reply.json()["usage"])
    assert found >= 5 * BLOCK and found % BLOCK == 0
    assert added["vllm:prefix_cache_hits_total"] == found
    assert added.labelled("gateway_cached_prompt_tokens_total", arm=arm) == found
    asked = added["vllm:prompt_tokens_total"]
    assert added.labelled("gateway_prompt_tokens_total", arm=arm) == asked > found


@each_arm
async def test_time_to_first_token_is_the_engines_and_the_way_there(site: Lab, arm: Arm) -> None:
    """The engine counts from the request's arrival in its server to the token's leaving its core.

    Beyond that the gateway sees the request's way in and the first event's way out: 3 to 10 ms
    here, more where other work waits for the same cores. It must never see less.
    """
    requests = 8
    before = await site.counted(arm)
    for number in range(requests):
        await complete(site.client, f"m@{arm}", prompt(f"ttft {arm} {number}", LENGTH), 2)
    added = await site.added(arm, before, requests)
    name = "vllm:time_to_first_token_seconds"
    assert added[f"{name}_count"] == requests
    own = added[f"{name}_sum"] / requests
    name = "gateway_upstream_time_to_first_token_seconds"
    assert added.labelled(f"{name}_count", arm=arm) == requests
    seen = added.labelled(f"{name}_sum", arm=arm) / requests
    print(f"the engine's {own * 1e3:.1f} ms, the gateway's {seen * 1e3:.1f} ms")
    assert own < seen < own * 1.15 + 0.030


@each_arm
async def test_a_prompt_that_was_seen_before_is_answered_sooner(site: Lab, arm: Arm) -> None:
    """Each against its own first time, so that a slow minute of the machine hits both."""
    quotients = []
    for number in range(5):
        tokens = prompt(f"again {arm} {number}", 4 * LENGTH)
        cold = await complete(site.client, f"m@{arm}", tokens, 1)
        warm = await complete(site.client, f"m@{arm}", tokens, 1)
        assert (cold.cached, warm.cached) == (0, 4 * LENGTH // BLOCK * BLOCK)
        quotients.append(warm.ttft / cold.ttft)
    print("warm by cold:", " ".join(f"{one:.2f}" for one in quotients))
    assert sorted(quotients)[2] < 0.5
