"""A simulated engine in real time: the scheduler, with a pause where a GPU would compute."""

from __future__ import annotations

import asyncio
import logging
import time
from array import array
from collections.abc import Callable

from gateway.simulator import answer
from gateway.simulator.config import EngineConfig
from gateway.simulator.metrics import EngineMetrics
from gateway.simulator.prefix_cache import PrefixCache
from gateway.simulator.scheduler import Scheduler, Step
from gateway.simulator.sequence import Sequence

log = logging.getLogger(__name__)

# Timers fire up to a millisecond late. The next step is shorter by as much, so that many short
# steps keep pace; an engine that lags by more has no processor, and its clock is not wound back.
CATCH_UP = 0.005


class Generation:
    """One request being served.

    Attributes:
        sequence: its tokens and state.
        submitted, started, first, last: when it came, was first scheduled, and brought its first
            and its latest token, in seconds of the engine's clock.
    """

    __slots__ = ("_taken", "_waiter", "first", "last", "sequence", "started", "submitted")

    def __init__(self, sequence: Sequence, submitted: float) -> None:
        self.sequence = sequence
        self.submitted = submitted
        self.started: float | None = None
        self.first: float | None = None
        self.last = submitted
        self._taken = 0
        self._waiter: asyncio.Future[None] | None = None

    async def tokens(self) -> array[int]:
        """The tokens generated since the last call, as soon as there are some; empty at the end."""
        while self._taken == self.sequence.generated and not self.sequence.finish_reason:
            self._waiter = asyncio.get_running_loop().create_future()
            await self._waiter
        start = self.sequence.prompt_tokens + self._taken
        self._taken = self.sequence.generated
        return self.sequence.tokens[start:]

    async def all_tokens(self) -> array[int]:
        """Every token, when the last one is there."""
        found = array("I")
        while more := await self.tokens():
            found.extend(more)
        return found

    def wake(self) -> None:
        """Tell whoever waits that something changed."""
        waiter, self._waiter = self._waiter, None
        if waiter is not None and not waiter.done():
            waiter.set_result(None)


class Engine:
    """Serves prompts as vLLM would with these settings, in `1 / speed` of the time.

    Run `run` as a task; everything else is called on the same event loop.

    Args:
        clock: monotonic seconds.

    Attributes:
        alive: whether `run` runs.
    """

    def __init__(self, config: EngineConfig, clock: Callable[[], float] = time.monotonic) -> None:
        cache = PrefixCache(config.blocks, config.tokens_per_block, enabled=config.prefix_caching)
        self.config = config
        self.metrics = EngineMetrics()
        self.scheduler = Scheduler(
            cache,
            max_num_batched_tokens=config.max_num_batched_tokens,
            max_num_seqs=config.max_num_seqs,
            long_prefill_token_threshold=config.long_prefill_token_threshold,
        )
        self.alive = False
        self._latency = config.machine.latency
        self._clock = clock
        self._generations: dict[Sequence, Generation] = {}
        self._work = asyncio.Event()

    def submit(self, sequence: Sequence) -> Generation:
        """Queue a sequence.

        Raises:
            ValueError: it does not fit in the KV cache.
        """
        self.scheduler.add(sequence)
        generation = Generation(sequence, self._clock())
        self._generations[sequence] = generation
        self._work.set()
        return generation

    def abort(self, generation: Generation) -> None:
        """End a generation; its place and its blocks are free at once. None if it has ended."""
        if self._generations.pop(generation.sequence, None) is None:
            return
        self.scheduler.abort(generation.sequence)
        self.metrics.finished["abort"] += 1
        generation.wake()

    async def run(self) -> None:
        """Step until cancelled; whatever is being served then is aborted."""
        self.alive = True
        try:
            while True:
                self._work.clear()
                if not self.scheduler.has_work:
                    await self._work.wait()
                await self._busy()
        except Exception:
            # Who started it awaits it only at its end, and would see requests hang until then.
            log.exception("the simulated engine died")
            raise
        finally:
            self.alive = False
            for generation in list(self._generations.values()):
                self.abort(generation)

    async def _busy(self) -> None:
        """Step until there is nothing left to do."""
        end = self._clock()
        while self.scheduler.has_work:
            now = self._clock()
            step = self.scheduler.schedule()
            self._note_started(step, now)
            end = max(end, now - CATCH_UP) + self._latency.of(step) / self.config.speed
            await asyncio.sleep(max(0.0, end - self._clock()))
            self._deliver(self.scheduler.complete(step, answer.token), self._clock())

    def _note_started(self, step: Step, now: float) -> None:
        for chunk in step.chunks:
            generation = self._generations[chunk.sequence]
            if generation.started is None:
                generation.started = now
                self.metrics.queue.observe(now - generation.submitted)

    def _deliver(self, sampled: list[Sequence], now: float) -> None:
        self.metrics.generated_tokens += len(sampled)
        for sequence in sampled:
            generation = self._generations[sequence]
            if generation.first is None:
                self._note_first(generation, now)
            else:
                self.metrics.inter_token.observe(now - generation.last)
            generation.last = now
            if sequence.finish_reason:
                del self._generations[sequence]
                self._note_finished(generation, sequence.finish_reason, now)
            generation.wake()

    def _note_first(self, generation: Generation, now: float) -> None:
        assert generation.started is not None
        generation.first = now
        self.metrics.ttft.observe(now - generation.submitted)
        self.metrics.prefill.observe(now - generation.started)
        self.metrics.prompt_tokens += generation.sequence.prompt_tokens
        self.metrics.cached_tokens += generation.sequence.cached or 0

    def _note_finished(self, generation: Generation, reason: str, now: float) -> None:
        assert generation.first is not None
        decode = now - generation.first
        self.metrics.finished[reason] += 1
        self.metrics.duration.observe(now - generation.submitted)
        self.metrics.decode.observe(decode)
        later = generation.sequence.generated - 1
        self.metrics.per_output_token.observe(decode / later if later else 0.0)
