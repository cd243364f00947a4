"""Who sends when: users that wait for their answers, or arrivals that do not.

In an open loop a request's latency counts from when it was due. A server that stalls would
otherwise delay the very requests that were to show it (coordinated omission).
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import nullcontext
from dataclasses import dataclass

from gateway.bench.load import head
from gateway.bench.load.client import Exchange
from gateway.bench.load.speech import Speech
from gateway.bench.load.workloads import Talk

Ask = Callable[[bytes, float, bytes, float], Awaitable[Exchange]]
"""Sends a body that was due at a time, with further lines of the head, so many seconds late."""

Done = Callable[[Talk, int, int, Exchange], None]
"""Told of every finished request: its talk, its turn, the characters it sent, and what came."""


@dataclass(frozen=True, slots=True)
class Arrivals:
    """When conversations of an open loop begin.

    Attributes:
        rate: requests a second; conversations of several turns begin as much more rarely.
        burstiness: shape of the gamma distribution of the pauses: 1 gives Poisson arrivals, less
            gives bursts, more comes closer to a regular beat. As in `vllm bench serve`.
    """

    rate: float
    burstiness: float = 1.0

    def times(self, talks: Sequence[Talk], source: random.Random) -> Iterator[float]:
        """When each of them is due, in seconds since the round began."""
        requests = sum(len(talk.questions) for talk in talks)
        mean = requests / (len(talks) * self.rate)
        time = 0.0
        for _ in talks:
            time += source.gammavariate(self.burstiness, mean / self.burstiness)
            yield time


class Driver:
    """Has conversations with a server.

    Args:
        think: mean seconds between the turns of a conversation, exponentially distributed.
        source: of pauses.
        clock: monotonic seconds, the event loop's own.
    """

    def __init__(
        self,
        ask: Ask,
        speech: Speech,
        done: Done,
        *,
        think: float,
        source: random.Random,
        clock: Callable[[], float],
    ) -> None:
        self._ask = ask
        self._speech = speech
        self._done = done
        self._think = think
        self._source = source
        self._clock = clock

    def prepared(self, talks: Sequence[Talk]) -> list[tuple[Talk, bytes]]:
        """The conversations with their first requests.

        Written before the round's clock runs: encoding a long prompt delays everybody's stamps.
        """
        return [(talk, self._request(talk, talk.questions[:1])) for talk in talks]

    async def closed(self, prepared: Sequence[tuple[Talk, bytes]], concurrency: int) -> None:
        """Each of `concurrency` users begins the next conversation when its last one is over."""
        waiting = iter(prepared)

        async def user() -> None:
            for talk, opening in waiting:
                await self._talk(talk, opening, self._clock())

        async with asyncio.TaskGroup() as group:
            for _ in range(min(concurrency, len(prepared))):
                group.create_task(user())

    async def opened(
        self, prepared: Sequence[tuple[Talk, bytes]], arrivals: Arrivals, concurrency: int | None
    ) -> None:
        """Conversations begin when the arrivals say, however many are under way.

        Args:
            concurrency: conversations at a time, if there is to be a limit; who waits for a place
                is late.
        """
        times = list(arrivals.times([talk for talk, _ in prepared], self._source))
        places = nullcontext() if concurrency is None else asyncio.Semaphore(concurrency)

        async def one(talk: Talk, opening: bytes, due: float) -> None:
            late = self._clock() - due  # waiting for a place is not the client's doing
            async with places:
                await self._talk(talk, opening, due, late)

        began = self._clock()
        async with asyncio.TaskGroup() as group:
            for (talk, opening), time in zip(prepared, times, strict=True):
                await asyncio.sleep(max(0.0, began + time - self._clock()))
                group.create_task(one(talk, opening, began + time))

    def _request(self, talk: Talk, said: Sequence[str]) -> bytes:
        return self._speech.request(talk.system, said, talk.output_tokens)

    async def _talk(self, talk: Talk, opening: bytes, due: float, late: float = 0.0) -> None:
        headers = head.session(talk.session)
        said: list[str] = []
        body = opening
        for turn, question in enumerate(talk.questions):
            said.append(question)
            if turn:
                await asyncio.sleep(self._pause())
                body = self._request(talk, said)
                due, late = self._clock(), 0.0
            exchange = await self._ask(body, due, headers, late)
            self._done(talk, turn, len(talk.system) + sum(map(len, said)), exchange)
            if turn + 1 < len(talk.questions):
                # What a user would see of a failed turn; the history must have two sides.
                said.append(self._speech.answer(exchange) or "No answer.")

    def _pause(self) -> float:
        return self._source.expovariate(1 / self._think) if self._think else 0.0
