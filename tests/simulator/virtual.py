"""Runs a scheduler in virtual time: a load of minutes in a moment, the same each time."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from gateway.simulator import answer
from gateway.simulator.latency import StepLatency
from gateway.simulator.scheduler import Scheduler
from gateway.simulator.sequence import Sequence


@dataclass(frozen=True, slots=True)
class Served:
    """One finished request; times in virtual seconds.

    Attributes:
        ttft: from submission to the first token.
        duration: from submission to the last.
        cached: prompt tokens that were cached.
    """

    ttft: float
    duration: float
    cached: int


def closed_loop(
    scheduler: Scheduler, latency: StepLatency, load: Iterable[Sequence], concurrency: int
) -> list[Served]:
    """Serve `load`, always `concurrency` requests at once; results in order of completion."""
    now = 0.0
    coming = iter(load)
    submitted: dict[Sequence, float] = {}
    first: dict[Sequence, float] = {}
    done: list[Served] = []
    while True:
        while len(submitted) < concurrency and (sequence := next(coming, None)) is not None:
            scheduler.add(sequence)
            submitted[sequence] = now
        if not submitted:
            return done
        step = scheduler.schedule()
        now += latency.of(step)
        for sequence in scheduler.complete(step, answer.token):
            first.setdefault(sequence, now)
            if sequence.finish_reason:
                start = submitted.pop(sequence)
                ttft = first.pop(sequence) - start
                done.append(Served(ttft, now - start, sequence.cached or 0))
