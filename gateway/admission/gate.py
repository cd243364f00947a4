"""The queue in front of a model: who waits for a free place, and who gets it next."""

from __future__ import annotations

import asyncio
import heapq
import math
from collections import OrderedDict
from collections.abc import Callable, Hashable
from dataclasses import dataclass

from gateway.errors import NoBackend, Overloaded
from gateway.records import Refusal
from gateway.routing.backend import Backend

NO_ROOM = "This model has no room for more requests right now; try again in {seconds:.0f} s."
TOO_LONG = (
    "No place for this request became free within {timeout:g} s; try again in {seconds:.0f} s."
)

Pick = Callable[[], Backend | None]
"""Claims a place and returns its backend, or None while there is none to be had."""

WhyNot = Callable[[], str | None]
"""Tells, for the client, why no backend could ever be picked as things are; None if one could."""


@dataclass(slots=True, eq=False)
class _Waiter:
    ticket: int
    since: float
    pick: Pick
    why_not: WhyNot
    lane: Hashable
    future: asyncio.Future[Backend]
    timer: asyncio.TimerHandle | None = None


class Gate:
    """Places on the backends of one model, first come, first served.

    Waiters of one lane want the same backends, so while the first of them finds no place, the
    rest need not be asked; waiters of different lanes do not block each other. Among those that
    can be served, the one that came first is.

    Args:
        queue_limit: requests that may wait.
        queue_timeout: seconds a request may wait.
        clock: monotonic seconds; tells how long the oldest has been waiting.

    Attributes:
        depth: requests that wait.
    """

    def __init__(self, queue_limit: int, queue_timeout: float, clock: Callable[[], float]) -> None:
        self.queue_limit = queue_limit
        self.queue_timeout = queue_timeout
        self.depth = 0
        self._clock = clock
        self._tickets = 0
        self._lanes: dict[Hashable, OrderedDict[int, _Waiter]] = {}

    def try_enter(self, pick: Pick) -> Backend | None:
        """A place without waiting, or None. It is not taken from those who wait already."""
        if self.depth:
            self.wake()
        return pick()

    async def enter(self, pick: Pick, why_not: WhyNot, lane: Hashable) -> Backend:
        """Wait for a place; `leave` gives it back.

        Args:
            pick: called now and whenever a place may have become free.
            why_not: called when it picked nothing.
            lane: equal for requests that want the same backends, in the same state of trying
                them; `pick` of one then answers for all.

        Raises:
            NoBackend: nothing serves, at once or while waiting; says what `why_not` says.
            Overloaded: the queue is full, or the wait took too long.
        """
        backend = self.try_enter(pick)
        if backend is not None:
            return backend
        reason = why_not()
        if reason is not None:
            raise _no_backend(reason)
        if self.depth >= self.queue_limit:
            seconds = self._oldest_wait()
            raise Overloaded(
                NO_ROOM.format(seconds=seconds), retry_after=seconds, refusal=Refusal.QUEUE_LIMIT
            )
        waiter = self._join(pick, why_not, lane)
        try:
            return await waiter.future
        except asyncio.CancelledError:
            future = waiter.future
            if future.done() and not future.cancelled() and future.exception() is None:
                # The place came in the same moment as the cancellation.
                self.leave(future.result())
            raise
        finally:
            self._part(waiter)

    def leave(self, backend: Backend) -> None:
        """Give a place back; it goes to the first who can use it.

        There may be more of them: what leaves can be the trial that opens its backend to all, and
        who comes next can prefer another place to the one that became free.
        """
        backend.release()
        if self.depth:
            self.wake()

    def wake(self) -> None:
        """Ask all who wait again, by order of arrival: what is usable has changed."""
        heads = [(next(iter(lane)), lane) for lane in self._lanes.values()]
        heapq.heapify(heads)
        while heads:
            ticket, lane = heads[0]
            if self._settle(lane[ticket]) and lane:
                heapq.heapreplace(heads, (next(iter(lane)), lane))
            else:
                heapq.heappop(heads)

    def _settle(self, waiter: _Waiter) -> bool:
        """Let a waiter go; False if it has to wait on."""
        if waiter.future.done():
            # Cancelled, but its task has not run since: a place given to it would be lost.
            self._part(waiter)
            return True
        backend = waiter.pick()
        if backend is not None:
            self._part(waiter)
            waiter.future.set_result(backend)
            return True
        reason = waiter.why_not()
        if reason is not None:
            self._part(waiter)
            waiter.future.set_exception(_no_backend(reason))
            return True
        return False

    def _join(self, pick: Pick, why_not: WhyNot, lane: Hashable) -> _Waiter:
        loop = asyncio.get_running_loop()
        self._tickets += 1
        future: asyncio.Future[Backend] = loop.create_future()
        waiter = _Waiter(self._tickets, self._clock(), pick, why_not, lane, future)
        waiter.timer = loop.call_later(self.queue_timeout, self._expire, waiter)
        self._lanes.setdefault(lane, OrderedDict())[waiter.ticket] = waiter
        self.depth += 1
        return waiter

    def _part(self, waiter: _Waiter) -> None:
        lane = self._lanes.get(waiter.lane)
        if lane is None or lane.pop(waiter.ticket, None) is None:
            return
        if not lane:
            del self._lanes[waiter.lane]
        self.depth -= 1
        if waiter.timer is not None:
            waiter.timer.cancel()

    def _expire(self, waiter: _Waiter) -> None:
        seconds = self._oldest_wait()
        self._part(waiter)
        if not waiter.future.done():
            message = TOO_LONG.format(timeout=self.queue_timeout, seconds=seconds)
            error = Overloaded(message, retry_after=seconds, refusal=Refusal.QUEUE_TIMEOUT)
            waiter.future.set_exception(error)

    def _oldest_wait(self) -> float:
        """How long the oldest has been waiting, at least 1 s: a newcomer can hardly do better."""
        heads = (next(iter(lane.values())) for lane in self._lanes.values())
        since = min((waiter.since for waiter in heads), default=math.inf)
        return max(1.0, self._clock() - since)


def _no_backend(reason: str) -> NoBackend:
    return NoBackend(reason, retry_after=5.0)
