"""The rounds of a run: every arm in turn, in another order each time.

Interleaved, whatever drifts (a machine that warms up, a neighbour that comes) meets all arms
alike; with the order rotated, so does whatever one turn does to the next.
"""

from __future__ import annotations

import random
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Protocol

from gateway.bench.analysis.cost import client_cost
from gateway.bench.analysis.figures import figures
from gateway.bench.load import head
from gateway.bench.load.client import Exchange, LoadClient
from gateway.bench.load.driver import Arrivals, Driver
from gateway.bench.load.ledger import Ledger
from gateway.bench.load.speech import Speech
from gateway.bench.load.workloads import Talk, Workload
from gateway.bench.results import EngineUse, GpuUse, Round
from gateway.bench.watch.pulse import Pulse


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What is sent.

    Attributes:
        arms: names for the header `X-Gateway-Arm`; a single empty one sends none.
        concurrency: users of a closed loop; the limit of an open one, None for none.
        arrivals: of an open loop; None for a closed one.
        think: mean seconds between the turns of a conversation.
        warm_up: send one round first that does not count.
    """

    arms: tuple[str, ...]
    rounds: int
    workload: Workload
    concurrency: int | None
    arrivals: Arrivals | None = None
    think: float = 0.0
    slo_ttft_ms: float | None = None
    seed: int = 0
    warm_up: bool = True


class EngineWatch(Protocol):
    """Looks at engines during a round; `uses` is called when it is over."""

    def watching(self, arm: str) -> AbstractAsyncContextManager[None]: ...
    def uses(self) -> tuple[EngineUse, ...]: ...


class GpuWatch(Protocol):
    """Looks at GPUs during a round, likewise."""

    def watching(self, arm: str) -> AbstractAsyncContextManager[None]: ...
    def uses(self) -> tuple[GpuUse, ...]: ...


Progress = Callable[[str, int, int, int], None]
"""Told the arm, the round's number, and how many requests of how many are done."""


def order(arms: Sequence[str], number: int) -> list[str]:
    """The arms in their order of round `number`."""
    first = number % len(arms)
    return [*arms[first:], *arms[:first]]


class Bench:
    """One run.

    Args:
        clock: monotonic seconds, the event loop's own.
        cpu: seconds of processor time this process has used.
    """

    def __init__(
        self,
        plan: Plan,
        client: LoadClient,
        speech: Speech,
        *,
        engines: EngineWatch | None = None,
        gpus: Sequence[GpuWatch] = (),
        progress: Progress = lambda arm, number, done, of: None,
        clock: Callable[[], float] = time.monotonic,
        cpu: Callable[[], float] = time.process_time,
    ) -> None:
        self._plan = plan
        self._client = client
        self._speech = speech
        self._engines = engines
        self._gpus = gpus
        self._progress = progress
        self._clock = clock
        self._cpu = cpu

    async def run(self) -> AsyncGenerator[Round, None]:
        """Each arm's turn of each round as soon as it is over, the warm-up among them."""
        async with Pulse(self._clock) as pulse:
            for number in range(0 if self._plan.warm_up else 1, self._plan.rounds + 1):
                talks = self._plan.workload.talks(number)
                for position, arm in enumerate(order(self._plan.arms, number)):
                    yield await self._turn(arm, number, position, talks, pulse)

    async def _turn(
        self, arm: str, number: int, position: int, talks: Sequence[Talk], pulse: Pulse
    ) -> Round:
        started = datetime.now(UTC).isoformat(timespec="milliseconds")
        ledger = Ledger(self._speech.api)
        driver = self._driver(arm, number, ledger, sum(len(talk.questions) for talk in talks))
        prepared = driver.prepared(talks)
        async with AsyncExitStack() as watches:
            for gpus in self._gpus:
                await watches.enter_async_context(gpus.watching(arm))
            if self._engines is not None:
                await watches.enter_async_context(self._engines.watching(arm))
            cpu = self._cpu()
            ledger.origin = self._clock()
            await self._drive(driver, prepared)
            cpu, delays = self._cpu() - cpu, pulse.delays(ledger.origin)
        samples, duration = ledger.samples(), ledger.ended - ledger.origin
        return Round(
            arm=arm,
            number=number,
            position=position,
            started=started,
            figures=figures(samples, duration, self._plan.slo_ttft_ms),
            client=client_cost(samples, cpu=cpu, duration=duration, delays=delays),
            samples=samples,
            engines=self._engines.uses() if self._engines else (),
            gpus=tuple(use for watch in self._gpus for use in watch.uses()),
        )

    async def _drive(self, driver: Driver, prepared: Sequence[tuple[Talk, bytes]]) -> None:
        plan = self._plan
        if plan.arrivals is None:
            await driver.closed(prepared, plan.concurrency or len(prepared))
        else:
            await driver.opened(prepared, plan.arrivals, plan.concurrency)

    def _driver(self, arm: str, number: int, ledger: Ledger, requests: int) -> Driver:
        chosen = head.arm(arm)

        def ask(body: bytes, due: float, headers: bytes, late: float) -> Awaitable[Exchange]:
            return self._client.ask(body, due, chosen + headers, late)

        def done(talk: Talk, turn: int, characters: int, exchange: Exchange) -> None:
            ledger.add(talk, turn, characters, exchange)
            self._progress(arm, number, ledger.count, requests)

        return Driver(
            ask,
            self._speech,
            done,
            think=self._plan.think,
            source=random.Random(f"{self._plan.seed}/{number}"),
            clock=self._clock,
        )
