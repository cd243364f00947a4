"""What the token budget of a step changes in the real engine, and what it does not."""

from __future__ import annotations

import pytest

from benchmarks.engine.client import complete
from benchmarks.engine.prompts import prompt
from tests.real_engine.lab import ARMS, BUDGETS, Arm, Lab, each_arm, on_engine

pytestmark = on_engine

PAIRS = 7


async def test_a_small_budget_is_slower_on_cold_prompts(site: Lab) -> None:
    """1,500 tokens are 24 steps of 64, or 3 of 512. The arms take turns, each first in turn.

    What else the machine does adds to a time and never takes from it, so the least one counts.
    """
    ttft: dict[Arm, list[float]] = {"a": [], "b": []}
    for number in range(PAIRS):
        tokens = prompt(f"cold {number}", 1500)
        for arm in ARMS if number % 2 else ARMS[::-1]:
            timing = await complete(site.client, f"m@{arm}", tokens, 1)
            assert timing.cached == 0
            ttft[arm].append(timing.ttft)
    least = {arm: min(times) for arm, times in ttft.items()}
    print(*(f"budget {BUDGETS[arm]}: {least[arm] * 1e3:.0f} ms" for arm in ARMS), sep=", ")
    assert least["a"] > 1.3 * least["b"]


@pytest.mark.parametrize("length", [100, 128, 129, 700, 1024])
async def test_hits_do_not_depend_on_the_budget(site: Lab, length: int) -> None:
    """A block is found again however it was computed; the last token's block never is whole."""
    found = {}
    for arm in ARMS:
        before = await site.counted(arm)
        tokens = prompt(f"hits {length}", length)
        for _ in range(3):
            await complete(site.client, f"m@{arm}", tokens, 1)
        await complete(site.client, f"m@{arm}", [*tokens, *prompt(f"longer {length}", 300)], 1)
        added = await site.added(arm, before, 4)
        name = "vllm:prefix_cache_{}_total"
        found[arm] = (added[name.format("hits")], added[name.format("queries")])
    again, longer = (length - 1) // 128 * 128, length // 128 * 128
    assert found["a"] == found["b"] == (2 * again + longer, 4 * length + 300)


@each_arm
async def test_the_engine_runs_with_the_budget_that_its_arm_is_named_for(
    site: Lab, arm: Arm
) -> None:
    """Only a server in developer mode tells it."""
    told = await site.engines[arm].get("/server_info", params={"config_format": "json"})
    scheduler = told.json()["vllm_config"]["scheduler_config"]
    assert scheduler["max_num_batched_tokens"] == BUDGETS[arm]
