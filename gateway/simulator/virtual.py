"""A scheduler in virtual time: a load of minutes in a moment, the same each time."""

from __future__ import annotations

import heapq
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import count

from gateway.simulator import answer
from gateway.simulator.latency import StepLatency, Work
from gateway.simulator.scheduler import Scheduler
from gateway.simulator.sequence import Sequence

NOTHING = Work()


@dataclass(slots=True)
class Served:
    """One request; times in virtual seconds since the load began.

    Attributes:
        arrived, first, last: when it came, and when its first and last token did.
        until_first: what the engine computed from the beginning of the step that it came in, or
            from its arrival at an idle engine, to its first token.
        joined_late: seconds of that first step that had passed when it came.
    """

    sequence: Sequence
    arrived: float
    joined_late: float
    first: float = 0.0
    last: float = 0.0
    until_first: Work = NOTHING

    @property
    def ttft(self) -> float:
        """Seconds from arrival to the first token."""
        return self.first - self.arrived

    @property
    def tpot(self) -> float | None:
        """Mean seconds of each token after the first; None where there is none."""
        later = self.sequence.generated - 1
        return (self.last - self.first) / later if later else None

    @property
    def cached(self) -> int:
        """Prompt tokens that were cached."""
        return self.sequence.cached or 0


def serve(
    scheduler: Scheduler,
    latency: StepLatency,
    arrivals: Iterable[tuple[float, Sequence]],
    following: Iterable[Sequence] = (),
    pause: float = 0.0,
) -> list[Served]:
    """Serve `arrivals` at their times, and after each that ends one of `following`.

    A closed loop of n users is n arrivals at 0 and all others in `following`; an open loop has
    arrivals only. A request that comes during a step joins the next one.

    Args:
        arrivals: seconds and what comes then.
        following: in order; each comes `pause` seconds after some request has ended.

    Returns:
        In order of their ends.

    Raises:
        ValueError: a request could never be finished with the blocks there are.
    """
    order = count()
    coming = [(time, next(order), sequence) for time, sequence in arrivals]
    heapq.heapify(coming)
    later = iter(following)
    under_way: dict[Sequence, tuple[Served, Work]] = {}
    done: list[Served] = []
    now = began = 0.0
    total = before = NOTHING
    while coming or under_way:
        if not under_way and coming[0][0] > now:
            now = coming[0][0]
        while coming and coming[0][0] <= now:
            arrived, _, sequence = heapq.heappop(coming)
            scheduler.add(sequence)
            # `began` is where the step before this one began, which it came in.
            during = arrived < now
            served = Served(sequence, arrived, arrived - began if during else 0.0)
            under_way[sequence] = (served, before if during else total)
        step = scheduler.schedule()
        work = Work.of(step)
        began, before, total = now, total, total.plus(work)
        now += latency.seconds(work)
        for sequence in scheduler.complete(step, answer.token):
            served, start = under_way[sequence]
            if sequence.generated == 1:
                served.first, served.until_first = now, total.less(start)
            if sequence.finish_reason:
                del under_way[sequence]
                served.last = now
                done.append(served)
                if (follower := next(later, None)) is not None:
                    heapq.heappush(coming, (now + pause, next(order), follower))
    return done
