"""Whatever comes, leaves and is cancelled in whatever order: no place and no waiter is lost."""

from __future__ import annotations

import asyncio
from collections import Counter
from dataclasses import dataclass, field

from hypothesis import given, settings
from hypothesis import strategies as st

from gateway.admission.gate import Gate
from gateway.errors import NoBackend, Overloaded
from gateway.routing.backend import Backend
from gateway.routing.circuit import Circuit
from gateway.settings import BackendSettings

QUEUE_LIMIT = 5
# Which backends a request of each lane would take.
LANES = {"a": (0,), "b": (1,), "both": (0, 1), "reversed": (1, 0)}

steps = st.lists(
    st.one_of(
        st.tuples(st.just("enter"), st.sampled_from(sorted(LANES))),
        st.tuples(st.just("cancel"), st.integers(0, 20)),
        st.tuples(st.just("leave"), st.integers(0, 20)),
        st.tuples(st.just("flip"), st.integers(0, 1)),
        st.tuples(st.just("fail"), st.integers(0, 1)),
        st.tuples(st.just("run"), st.integers(1, 3)),
    ),
    max_size=60,
)


def backend(name: str, places: int) -> Backend:
    limits = BackendSettings(url="http://x:1", max_concurrency=places)
    circuit = Circuit(lambda: 0.0)
    return Backend(name, limits.url, None, "arm", "model", limits, circuit)


@dataclass
class World:
    """Requests that enter, hold their place until told to leave, and may be cancelled."""

    backends: list[Backend] = field(default_factory=lambda: [backend("0", 1), backend("1", 2)])
    gate: Gate = field(default_factory=lambda: Gate(QUEUE_LIMIT, 30.0, lambda: 0.0))
    tasks: list[asyncio.Task[str]] = field(default_factory=list)
    leave: list[asyncio.Event] = field(default_factory=list)
    inside: int = 0
    waiting: Counter[str] = field(default_factory=Counter)

    async def request(self, lane: str, leave: asyncio.Event) -> str:
        wanted = [self.backends[index] for index in LANES[lane]]

        def pick() -> Backend | None:
            return next((one for one in wanted if one.claim()), None)

        def why_not() -> str | None:
            return None if any(one.usable() for one in wanted) else "all are down"

        try:
            place = self.gate.try_enter(pick)
            if place is None:
                self.waiting[lane] += 1
                try:
                    place = await self.gate.enter(pick, why_not, lane)
                finally:
                    self.waiting[lane] -= 1
        except (NoBackend, Overloaded) as error:
            return type(error).__name__
        self.inside += 1
        try:
            await leave.wait()
        finally:
            self.inside -= 1
            self.gate.leave(place)
        return "served"

    async def step(self, kind: str, argument: str | int) -> None:
        match kind, argument:
            case "enter", str(lane):
                self.leave.append(asyncio.Event())
                self.tasks.append(asyncio.create_task(self.request(lane, self.leave[-1])))
            case "cancel", int(index) if self.tasks:
                self.tasks[index % len(self.tasks)].cancel()
            case "leave", int(index) if self.tasks:
                self.leave[index % len(self.tasks)].set()
            case "flip", int(index):
                self.backends[index].up = not self.backends[index].up
                self.gate.wake()
            case "fail", int(index):
                self.backends[index].circuit.failure()
            case "run", int(times):
                for _ in range(times):
                    await asyncio.sleep(0)

    async def quiet(self) -> None:
        for _ in range(200):
            await asyncio.sleep(0)


def wait_in_vain(world: World) -> list[str]:
    """The lanes somebody waits in although a place is free on a backend they would take."""
    return [
        lane
        for lane, count in world.waiting.items()
        for one in (world.backends[index] for index in LANES[lane])
        if count and one.usable() and one.outstanding < one.max_concurrency
    ]


async def play(script: list[tuple[str, str | int]]) -> None:
    world = World()
    for kind, argument in script:
        await world.step(kind, argument)
        assert 0 <= world.gate.depth <= QUEUE_LIMIT
        assert all(0 <= one.outstanding <= one.max_concurrency for one in world.backends)
    await world.quiet()
    assert sum(one.outstanding for one in world.backends) == world.inside
    assert world.waiting.total() == world.gate.depth
    assert wait_in_vain(world) == []
    for event in world.leave:
        event.set()
    await world.quiet()
    assert world.gate.depth == 0
    assert all(one.outstanding == 0 for one in world.backends)
    assert all(task.done() for task in world.tasks)
    outcomes = {task.result() for task in world.tasks if not task.cancelled()}
    assert outcomes <= {"served", "NoBackend", "Overloaded"}


@settings(max_examples=300, deadline=None)
@given(steps)
def test_no_place_and_no_waiter_is_lost(script: list[tuple[str, str | int]]) -> None:
    asyncio.run(play(script))


async def test_two_thousand_requests_of_which_a_third_leave_early() -> None:
    world = World()
    world.gate.queue_limit = 2000
    for number in range(2000):
        await world.step("enter", sorted(LANES)[number % len(LANES)])
    await world.quiet()
    assert world.gate.depth == 1997
    for number in range(0, 2000, 3):
        await world.step("cancel", number)
    for event in world.leave:
        event.set()
    async with asyncio.timeout(20):
        await asyncio.gather(*world.tasks, return_exceptions=True)
    served = [task for task in world.tasks if not task.cancelled()]
    assert len(served) == 2000 - 667
    assert {task.result() for task in served} == {"served"}
    assert world.gate.depth == 0
    assert [one.outstanding for one in world.backends] == [0, 0]
