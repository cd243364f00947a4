"""Faults that users of other gateways reported, each as a test that this one does not have it."""

from __future__ import annotations

import asyncio
from collections import Counter

import pytest

from gateway.admission.gate import Gate
from gateway.errors import NoBackend
from gateway.routing.backend import Backend
from gateway.routing.health import Prober
from gateway.routing.table import Route
from tests.routing.conftest import Clock, MakeTable

SPLIT = {"llama": {"a": (90, ["a1", "a2"]), "b": (10, ["b1"])}}


def first_choice(route: Route, session: int) -> Backend:
    arm = route.assign(session)
    return next(route.candidates(arm, session, (), cross_arm=True))


def shares(route: Route, sessions: range) -> dict[str, float]:
    """The share of each arm among requests, where every session sends five in turn."""
    served = Counter(first_choice(route, s).arm for _ in range(5) for s in sessions)
    return {arm: served[arm] / served.total() for arm in route.arms}


def test_affinity_does_not_override_weights_litellm_19536(make_table: MakeTable) -> None:
    route = make_table(SPLIT).routes["llama"]
    assert shares(route, range(4000))["b"] == pytest.approx(0.10, abs=0.02)
    homes = {s: {first_choice(route, s).name for _ in range(3)} for s in range(500)}
    assert all(len(names) == 1 for names in homes.values()), "and sessions stay where they are"


def test_an_old_pin_does_not_defeat_new_weights_litellm_32308(make_table: MakeTable) -> None:
    """Sessions that were served before the change are split by the new weights like any other."""
    route = make_table(SPLIT).routes["llama"]
    sessions = range(4000)
    before = {session: first_choice(route, session).name for session in sessions}
    route.set_weights({"a": 50, "b": 50}, revision=1)
    assert shares(route, sessions)["b"] == pytest.approx(0.50, abs=0.03)
    route.set_weights({"a": 100, "b": 0}, revision=2)
    assert shares(route, sessions)["b"] == 0.0
    route.set_weights({"a": 90, "b": 10}, revision=3)
    assert {session: first_choice(route, session).name for session in sessions} == before


async def test_one_hung_backend_does_not_block_the_others_production_stack_749(
    make_table: MakeTable,
) -> None:
    table = make_table(SPLIT)
    answered = Counter[str]()

    async def probe(backend: Backend) -> bool:
        if backend.name == "a1":
            await asyncio.Event().wait()
        answered[backend.name] += 1
        return backend.name != "b1"

    prober = Prober(
        lambda: table.backends.values(), probe, lambda _: None, interval=0.01, timeout=60.0
    )
    task = asyncio.create_task(prober.run())
    async with asyncio.timeout(5):
        while answered["a2"] < 5 or table.backends["b1"].up:
            await asyncio.sleep(0.01)
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    assert answered["a1"] == 0


async def test_requests_to_a_hung_backend_do_not_hold_up_other_arms_production_stack_749(
    make_table: MakeTable, clock: Clock
) -> None:
    """Arm a takes requests and never answers; those of arm b pass all who queue for it."""
    table = make_table(
        {"llama": {"a": (1, ["a1"]), "b": (1, ["b1"])}}, backends={"a1": {"max_concurrency": 2}}
    )
    route = table.routes["llama"]
    gate = Gate(queue_limit=100, queue_timeout=30.0, clock=clock)
    stuck = [asyncio.create_task(enter(gate, route, "a")) for _ in range(20)]
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    assert gate.depth == 18
    for _ in range(50):
        backend = await asyncio.wait_for(enter(gate, route, "b"), 1)
        gate.leave(backend)
    for task in stuck:
        task.cancel()
    await asyncio.gather(*stuck, return_exceptions=True)
    assert gate.depth == 0


async def enter(gate: Gate, route: Route, arm: str) -> Backend:
    def candidates() -> list[Backend]:
        return list(route.candidates(route.arms[arm], 1, (), cross_arm=True))

    def pick() -> Backend | None:
        return next((backend for backend in candidates() if backend.claim()), None)

    def why_not() -> str | None:
        return None if candidates() else "all are down"

    return gate.try_enter(pick) or await gate.enter(pick, why_not, arm)


@pytest.mark.parametrize("ending", ["answer", "error", "cancel while served", "cancel in queue"])
async def test_in_flight_counts_do_not_leak_production_stack_634_and_1040(
    make_table: MakeTable, clock: Clock, ending: str
) -> None:
    table = make_table(
        {"llama": {"a": (1, ["a1", "a2"])}},
        backends={"a1": {"max_concurrency": 1}, "a2": {"max_concurrency": 1}},
    )
    route = table.routes["llama"]
    gate = Gate(queue_limit=1000, queue_timeout=30.0, clock=clock)
    hold = asyncio.Event()

    async def request() -> None:
        backend = await enter(gate, route, "a")
        try:
            await hold.wait()
            if ending == "error":
                raise ConnectionError
        finally:
            gate.leave(backend)

    tasks = [asyncio.create_task(request()) for _ in range(100)]
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    assert (gate.depth, [b.outstanding for b in table.backends.values()]) == (98, [1, 1])
    if ending == "cancel while served":
        tasks[0].cancel()
        tasks[1].cancel()
    elif ending == "cancel in queue":
        for task in tasks[2:]:
            task.cancel()
    hold.set()
    await asyncio.gather(*tasks, return_exceptions=True)
    assert (gate.depth, [b.outstanding for b in table.backends.values()]) == (0, [0, 0])


async def test_in_flight_counts_survive_a_reload_that_replaces_the_backend_production_stack_1040(
    make_table: MakeTable, clock: Clock
) -> None:
    table = make_table(SPLIT)
    gate = Gate(queue_limit=10, queue_timeout=30.0, clock=clock)
    backend = await enter(gate, table.routes["llama"], "b")
    again = make_table(SPLIT, previous=table, backends={"b1": {"url": "http://moved:1"}})
    gate.leave(backend)
    assert (backend.outstanding, again.backends["b1"].outstanding) == (0, 0)


async def test_those_who_wait_for_an_arm_that_dies_are_served_by_another(
    make_table: MakeTable, clock: Clock
) -> None:
    table = make_table(SPLIT, backends={"b1": {"max_concurrency": 1}})
    route = table.routes["llama"]
    gate = Gate(queue_limit=10, queue_timeout=30.0, clock=clock)
    await enter(gate, route, "b")
    task = asyncio.create_task(enter(gate, route, "b"))
    await asyncio.sleep(0)
    assert gate.depth == 1
    table.backends["b1"].up = False
    gate.wake()
    assert (await task).arm == "a"


async def test_those_who_wait_across_a_reload_get_what_is_configured_now(
    make_table: MakeTable, clock: Clock
) -> None:
    table = make_table(SPLIT, backends={"b1": {"max_concurrency": 1}})
    route = table.routes["llama"]
    gate = Gate(queue_limit=10, queue_timeout=30.0, clock=clock)
    await enter(gate, route, "b")
    task = asyncio.create_task(enter(gate, route, "b"))
    await asyncio.sleep(0)
    make_table({"llama": {"b": (1, ["b2"])}}, previous=table)
    gate.wake()
    assert (await task).name == "b2"


async def test_those_who_wait_for_a_model_that_a_reload_removes_are_told(
    make_table: MakeTable, clock: Clock
) -> None:
    table = make_table(SPLIT, backends={"b1": {"max_concurrency": 1}})
    route = table.routes["llama"]
    gate = Gate(queue_limit=10, queue_timeout=30.0, clock=clock)
    running = await enter(gate, route, "b")
    task = asyncio.create_task(enter(gate, route, "b"))
    await asyncio.sleep(0)
    make_table({"other": {"o": (1, ["o1"])}}, previous=table)
    gate.wake()
    with pytest.raises(NoBackend):
        await task
    gate.leave(running)
    assert running.outstanding == 0
