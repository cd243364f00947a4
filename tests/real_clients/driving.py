"""Scenarios as tests: all that are wanted are played at once, since agents mostly wait.

Each agent takes seconds to start and some retry for minutes. So the first test starts every
scenario of the run on one event loop, which runs whenever a test waits for its own.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from tests.real_clients.agents import Agent
from tests.real_clients.backend import Kind
from tests.real_clients.harness import Stage, Templates, stage
from tests.real_clients.steps import Step

BOTH: tuple[Kind, ...] = ("native", "chat-only")
NATIVE: tuple[Kind, ...] = ("native",)


Requests = int | range


@dataclass
class Lab:
    """What a scenario is played with.

    Attributes:
        requests: for an answer, made by the agent: the figure that goes into the documentation,
            a range where it depends on how fast the machine is.
        open: what it is played on, once that is there.
    """

    agent: Agent
    kind: Kind
    programs: Path
    folder: Path
    templates: Templates
    requests: Requests = 0
    open: Stage | None = None

    @property
    def under_way(self) -> bool:
        """Whether the agent has asked for something."""
        return self.open is not None and bool(self.open.asked or self.open.records)

    @asynccontextmanager
    async def stage(self, *scripts: Sequence[Step], **changes: Any) -> AsyncIterator[Stage]:
        """The agent before a gateway and its engines: `harness.stage`."""
        where = (self.agent, self.programs, self.folder, self.kind)
        async with stage(*where, *scripts, templates=self.templates, **changes) as self.open:
            yield self.open


Play = Callable[[Lab], Awaitable[None]]


@dataclass(frozen=True)
class Case:
    """A scenario on one kind of engine.

    Attributes:
        patient: the agent waits nearly all the time, so the case takes no place from others.
    """

    agent: Agent
    scenario: str
    kind: Kind
    play: Play
    patient: bool


@dataclass
class Runs:
    """The cases of a run, which are being played while a test waits for one of them.

    Attributes:
        requests: how many requests the agents made, once the case has passed.
    """

    loop: asyncio.AbstractEventLoop
    tasks: dict[Case, asyncio.Task[Requests]] = field(default_factory=dict)
    requests: dict[Case, Requests] = field(default_factory=dict)

    def result(self, case: Case) -> None:
        """Wait for the case; raises what its scenario raised."""
        self.requests[case] = self.loop.run_until_complete(self.tasks[case])


class Scenarios:
    """Those of one agent. `play` makes a test of one.

    Attributes:
        cases: in the order in which they are written.
    """

    def __init__(self, agent: Agent) -> None:
        self.agent = agent
        self.cases: list[Case] = []

    def play(
        self, scenario: str, kinds: Sequence[Kind] = BOTH, *, patient: bool = False
    ) -> Callable[[Play], Callable[..., None]]:
        """Args:
        scenario: what the agent goes through, as the documentation says it.
        """

        def decorate(play: Play) -> Callable[..., None]:
            return self.test(self.cases_of(scenario, kinds, play, patient=patient))

        return decorate

    def cases_of(
        self, scenario: str, kinds: Sequence[Kind], play: Play, *, patient: bool
    ) -> list[Case]:
        """A scenario on each kind of engine."""
        return [Case(self.agent, scenario, kind, play, patient) for kind in kinds]

    def test(self, cases: Sequence[Case]) -> Callable[..., None]:
        """One test for each case."""
        self.cases.extend(cases)

        @pytest.mark.clients
        @pytest.mark.timeout(900)
        @pytest.mark.parametrize("case", cases, ids=[f"{one.scenario}-{one.kind}" for one in cases])
        def test(case: Case, runs: Runs) -> None:
            runs.result(case)

        return test


@contextmanager
def played(
    cases: Sequence[Case], programs: Path, folder: Path, at_once: int = 3, starts: int = 2
) -> Iterator[Runs]:
    """Play these cases; what still runs in the end is cancelled.

    Args:
        at_once: how many of the impatient ones.
        starts: how many of the patient ones are waited for until they have asked something. A
            start takes seconds of CPU: all of them at once made agents late for limits that had
            come back by then.
    """
    templates: Templates = {}
    places, gate = asyncio.Semaphore(at_once), asyncio.Semaphore(starts)

    async def one(number: int, case: Case) -> Requests:
        lab = Lab(case.agent, case.kind, programs, folder / str(number), templates)
        if case.patient:
            await _started(case, lab, gate)
        else:
            async with places:
                await case.play(lab)
        return lab.requests

    loop = asyncio.new_event_loop()
    runs = Runs(loop)
    try:
        for number, case in enumerate(sorted(cases, key=lambda case: not case.patient)):
            runs.tasks[case] = loop.create_task(one(number, case))
        yield runs
    finally:
        loop.run_until_complete(_cancel(runs.tasks.values()))
        loop.close()


async def _started(case: Case, lab: Lab, gate: asyncio.Semaphore) -> None:
    """Play a case that takes a place until its agent has asked for something."""
    await gate.acquire()
    playing = asyncio.ensure_future(case.play(lab))
    try:
        try:
            while not playing.done() and not lab.under_way:
                await asyncio.sleep(0.2)
        finally:
            gate.release()
        await playing
    finally:
        playing.cancel()
        await asyncio.gather(playing, return_exceptions=True)


async def _cancel(tasks: Iterable[asyncio.Task[Requests]]) -> None:
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
