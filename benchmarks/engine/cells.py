"""What is swept, and one measurement of it: an engine under one kind of request."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass

import httpx

from benchmarks.engine.client import Timing, complete
from benchmarks.engine.prompts import prompt

WARM_UP = 4
TIMEOUT = 600.0


@dataclass(frozen=True)
class Plan:
    """What is measured, in every round of every budget.

    Attributes:
        prompts: lengths in tokens.
        at_once: requests under way at a time, one such loop after another.
        requests: of each kind.
        tokens: of each answer; those after the first tell the inter-token latency.
    """

    budgets: tuple[int, ...] = (64, 128, 256, 512, 1024, 2048)
    prompts: tuple[int, ...] = (250, 1000, 4000)
    at_once: tuple[int, ...] = (1, 4)
    rounds: int = 3
    requests: int = 12
    tokens: int = 8


QUICK = Plan(budgets=(64, 512), prompts=(250, 1000), at_once=(2,), rounds=1, requests=3, tokens=4)
"""Shows in a minute that everything works; says nothing else."""


@dataclass(frozen=True)
class Cell:
    """One measurement: all requests of one kind.

    Attributes:
        cache: `cold` where no engine has seen the prompts, `cached` at their second time.
        ttft_ms, gap_ms: of each request the first token, and of all requests each later frame.
        cached_share: of the prompts' tokens, by the engine's usage.
        load: of the machine in the last minute, as `uptime` has it: other work slows all of this.
    """

    budget: int
    round: int
    prompt: int
    at_once: int
    cache: str
    ttft_ms: tuple[float, ...]
    gap_ms: tuple[float, ...]
    cached_share: float
    seconds: float
    load: float

    def as_json(self) -> dict[str, object]:
        return asdict(self)


def warm_up(url: str, model: str, headers: dict[str, str], salt: str) -> None:
    """The first requests of an engine take longer, and are not measured."""
    prompts = [prompt(f"{salt} warm-up {number}", 500) for number in range(WARM_UP)]
    asyncio.run(_loop(url, model, headers, prompts, 1, 4))


def measure(
    url: str, model: str, headers: dict[str, str], where: tuple[int, int], kind: tuple[int, int],
    plan: Plan, salt: str,
) -> tuple[Cell, Cell]:  # fmt: skip
    """New prompts in a closed loop, and then the same ones again.

    Args:
        where: budget and round.
        kind: tokens of a prompt, and requests at once.
        salt: makes prompts that nobody has sent before.

    Raises:
        httpx.HTTPError, ValueError: a request failed; as of `complete`.
    """
    length, at_once = kind
    seeds = (f"{salt} {where} {kind} {number}" for number in range(plan.requests))
    prompts = [prompt(seed, length) for seed in seeds]

    def run(cache: str) -> Cell:
        began = time.perf_counter()
        timings = asyncio.run(_loop(url, model, headers, prompts, at_once, plan.tokens))
        seconds = time.perf_counter() - began
        return _cell(where, kind, cache, timings, seconds)

    return run("cold"), run("cached")


def _cell(
    where: tuple[int, int], kind: tuple[int, int], cache: str, timings: Sequence[Timing],
    seconds: float,
) -> Cell:  # fmt: skip
    return Cell(
        budget=where[0],
        round=where[1],
        prompt=kind[0],
        at_once=kind[1],
        cache=cache,
        ttft_ms=tuple(round(one.ttft * 1e3, 2) for one in timings),
        gap_ms=tuple(round(gap * 1e3, 2) for one in timings for gap in one.gaps),
        cached_share=round(sum(t.cached for t in timings) / sum(t.prompt for t in timings), 4),
        seconds=round(seconds, 2),
        load=round(os.getloadavg()[0], 2),
    )


async def _loop(
    url: str, model: str, headers: dict[str, str], prompts: Sequence[Sequence[int]], at_once: int,
    tokens: int,
) -> list[Timing]:  # fmt: skip
    """Each prompt once, `at_once` at a time: the next one starts when one has ended."""
    places = asyncio.Semaphore(at_once)
    async with httpx.AsyncClient(
        base_url=url, headers=headers, timeout=TIMEOUT, trust_env=False
    ) as client:

        async def one(tokens_of: Sequence[int]) -> Timing:
            async with places:
                return await complete(client, model, tokens_of, tokens)

        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(one(each)) for each in prompts]
    return [task.result() for task in tasks]
