"""Rounds against a backend whose schedule is known."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.bench.load.client import LoadClient
from gateway.bench.load.speech import Speech
from gateway.bench.load.workloads import shared_prefix
from gateway.bench.results import Round
from gateway.bench.rounds import Bench, Plan, order
from gateway.bench.run import collect
from gateway.records import Api
from tests.support.apis import DIALECTS
from tests.support.scripted import Received, ScriptedBackend, scripted
from tests.support.site import streams

DELAYS = {"quick": 0.02, "slow": 0.08}
WORKLOAD = shared_prefix(8, 1, 0, prefix=64, question=16, cold=False)


async def by_arm(request: Received, writer: asyncio.StreamWriter) -> None:
    """The first event at once, the first token after the arm's delay."""
    opening, *rest = DIALECTS[0].frames
    delay = DELAYS[request.headers["x-gateway-arm"]]
    await streams(opening, b"".join(rest), pause=delay)(request, writer)


@asynccontextmanager
async def benching(**changes: Any) -> AsyncIterator[tuple[Bench, ScriptedBackend]]:
    plan = Plan(arms=tuple(DELAYS), rounds=3, workload=WORKLOAD, concurrency=4)
    values = {name: getattr(plan, name) for name in plan.__slots__} | changes
    async with (
        scripted(by_arm) as backend,
        LoadClient(
            backend.url, "/v1/chat/completions", b"", timeout=5, clock=time.monotonic
        ) as client,
    ):
        yield Bench(Plan(**values), client, Speech(Api.CHAT, "m", {})), backend


async def rounds_of(bench: Bench) -> list[Round]:
    return [one async for one in bench.run()]


@given(st.lists(st.text(min_size=1), min_size=1, max_size=5, unique=True), st.integers(0, 20))
def test_each_round_has_all_arms_and_each_place_sees_every_arm(arms: list[str], first: int) -> None:
    orders = [order(arms, number) for number in range(first, first + len(arms))]
    assert all(sorted(one) == sorted(arms) for one in orders)
    assert all(len(set(place)) == len(arms) for place in zip(*orders, strict=True))


async def test_arms_take_turns_and_the_order_rotates() -> None:
    async with benching() as (bench, backend):
        found = await rounds_of(bench)
    assert [(one.number, one.position, one.arm) for one in found] == [
        (0, 0, "quick"),
        (0, 1, "slow"),
        (1, 0, "slow"),
        (1, 1, "quick"),
        (2, 0, "quick"),
        (2, 1, "slow"),
        (3, 0, "slow"),
        (3, 1, "quick"),
    ]
    asked = [request.headers["x-gateway-arm"] for request in backend.requests]
    assert asked == [arm for one in found for arm in [one.arm] * 8]


async def test_each_arm_gets_the_delay_it_has() -> None:
    async with benching(slo_ttft_ms=60.0) as (bench, _):
        found = await rounds_of(bench)
    for one in found:
        median = one.figures["median_ttft_ms"]
        assert median is not None
        assert 1000 * DELAYS[one.arm] - 2 <= median <= 1000 * DELAYS[one.arm] + 40
        assert one.figures["completed"] == 8 and one.figures["total_input_tokens"] == 56
    slow = next(one for one in found if one.arm == "slow")
    assert slow.figures["request_goodput"] == 0
    assert slow.figures["duration"] == pytest.approx(2 * DELAYS["slow"], abs=0.08)


async def test_the_same_questions_for_each_arm_and_new_ones_each_round() -> None:
    async with benching() as (bench, backend):
        await rounds_of(bench)
    bodies = [request.body for request in backend.requests]
    turns = [set(bodies[start : start + 8]) for start in range(0, len(bodies), 8)]
    assert turns[0] == turns[1] and turns[2] == turns[3]
    assert not turns[0] & turns[2]


async def test_samples_are_numbered_by_when_they_were_due() -> None:
    async with benching(rounds=1, warm_up=False) as (bench, _):
        first, *_ = await rounds_of(bench)
    assert [sample.number for sample in first.samples] == list(range(8))
    dues = [sample.due_ms for sample in first.samples]
    assert dues == sorted(dues) and dues[0] >= 0


async def test_the_clients_own_cost_is_measured() -> None:
    async with benching(rounds=1, warm_up=False, workload=WORKLOAD) as (bench, _):
        first, *_ = await rounds_of(bench)
    cost = first.client
    assert cost.stamp_ms is not None and cost.stamp_p99_ms is not None
    assert 0 < cost.stamp_ms <= cost.stamp_p99_ms
    assert cost.cpu_ms_per_request > 0
    median = first.figures["median_ttft_ms"]
    # Each of the figures is rounded, the times to a microsecond and the share to four places.
    assert median and cost.ttft_share == pytest.approx(
        (cost.send_ms + cost.stamp_ms) / median, abs=0.0001 + 0.001 / median
    )


async def test_the_warm_up_does_not_count() -> None:
    async with benching() as (bench, _):
        rounds, interrupted = await collect(bench, asyncio.Event())
    assert not interrupted
    assert [one.number for one in rounds] == [1, 1, 2, 2, 3, 3]


async def test_an_interruption_keeps_what_is_complete_and_leaves_the_rest() -> None:
    async with benching(rounds=100) as (bench, backend):
        stop = asyncio.Event()
        asyncio.get_running_loop().call_later(0.8, stop.set)
        rounds, interrupted = await collect(bench, stop)
        async with asyncio.timeout(2):
            await asyncio.gather(*(one.left.wait() for one in backend.requests[-1:]))
    assert interrupted
    assert 0 < len(rounds) < 20
    assert all(len(one.samples) == 8 for one in rounds)
