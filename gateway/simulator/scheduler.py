"""vLLM V1's scheduler: one token budget a step, running sequences first, then first come first.

Follows vLLM 0.32 (`v1/core/sched/scheduler.py`) with FCFS policy, without speculation, encoder
inputs or asynchronous scheduling.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field

from gateway.simulator.prefix_cache import PrefixCache
from gateway.simulator.sequence import Sequence, State


@dataclass(frozen=True, slots=True)
class Chunk:
    """What one sequence computes in a step: `tokens` of it, after `context` earlier ones."""

    sequence: Sequence
    context: int
    tokens: int


@dataclass(slots=True)
class Step:
    """One engine step.

    Attributes:
        chunks: in the order in which they were given budget.
        preempted: sequences that lost their blocks, in the order in which they did.
    """

    chunks: list[Chunk] = field(default_factory=list)
    preempted: list[Sequence] = field(default_factory=list)

    @property
    def tokens(self) -> int:
        return sum(chunk.tokens for chunk in self.chunks)


class Scheduler:
    """Decides which tokens each step computes.

    Call `schedule`, let the step's time pass, then call `complete`. `abort` may come between.

    Args:
        cache: where the blocks come from.
        max_num_batched_tokens: the budget of a step, in tokens.
        max_num_seqs: the most sequences that run at once.
        long_prefill_token_threshold: the longest chunk of one sequence; 0 for no limit.

    Attributes:
        running: in admission order.
        prefix_queries, prefix_hits: prompt tokens looked up and found, once for each sequence.
        preemptions: how often a sequence lost its blocks.
    """

    def __init__(
        self,
        cache: PrefixCache,
        *,
        max_num_batched_tokens: int,
        max_num_seqs: int,
        long_prefill_token_threshold: int = 0,
    ) -> None:
        self.cache = cache
        self.running: list[Sequence] = []
        self.prefix_queries = 0
        self.prefix_hits = 0
        self.preemptions = 0
        self._waiting: deque[Sequence] = deque()
        self._budget = max_num_batched_tokens
        self._max_running = max_num_seqs
        self._longest_chunk = long_prefill_token_threshold or max_num_batched_tokens

    @property
    def waiting(self) -> int:
        """How many sequences wait for admission."""
        return len(self._waiting)

    @property
    def has_work(self) -> bool:
        return bool(self.running or self._waiting)

    def add(self, sequence: Sequence) -> None:
        """Queue a sequence.

        Raises:
            ValueError: it could never be finished with the blocks there are.
        """
        longest = sequence.prompt_tokens + sequence.max_tokens
        if longest > self.cache.num_blocks * self.cache.block_size:
            raise ValueError(f"{longest} tokens do not fit in the KV cache")
        self._extend_hashes(sequence)
        self._waiting.append(sequence)

    def abort(self, sequence: Sequence) -> None:
        """End a sequence; its blocks and its place are free at once."""
        if sequence.state is State.WAITING:
            self._waiting.remove(sequence)
        elif sequence.state is State.RUNNING:
            self.running.remove(sequence)
            self.cache.release(sequence.table)
        else:
            return
        sequence.state = State.ABORTED

    def schedule(self) -> Step:
        """Plan the next step. What it computes counts as computed from here on."""
        step = Step()
        budget = self._schedule_running(step, self._budget)
        # Blocks are short when somebody was preempted: taking more in would preempt again.
        if not step.preempted:
            self._admit(step, budget)
        for chunk in step.chunks:
            chunk.sequence.computed += chunk.tokens
        return step

    def complete(self, step: Step, sample: Callable[[Sequence], int]) -> list[Sequence]:
        """Sample a token for each sequence that `step` computed to its end; return those.

        Sequences that are finished by it leave; their blocks stay hittable.
        """
        sampled: list[Sequence] = []
        for chunk in step.chunks:
            sequence = chunk.sequence
            if sequence.state is not State.RUNNING or sequence.computed < len(sequence.tokens):
                continue
            sequence.tokens.append(sample(sequence))
            self._extend_hashes(sequence)
            sampled.append(sequence)
            if sequence.finish_reason:
                sequence.state = State.FINISHED
                self.cache.release(sequence.table)
        self.running = [s for s in self.running if s.state is State.RUNNING]
        return sampled

    def _schedule_running(self, step: Step, budget: int) -> int:
        index = 0
        while index < len(self.running) and budget > 0:
            sequence = self.running[index]
            chunk = self._chunk(sequence, sequence.computed, budget)
            if not self._allocate_or_preempt(sequence, chunk.tokens, step):
                break
            step.chunks.append(chunk)
            budget -= chunk.tokens
            index += 1
        return budget

    def _allocate_or_preempt(self, sequence: Sequence, tokens: int, step: Step) -> bool:
        """Find blocks, taking them from the last running; False if it was the last itself."""
        while not self.cache.allocate(sequence.table, sequence.computed + tokens):
            last = self.running.pop()
            self._preempt(last)
            step.preempted.append(last)
            if last is sequence:
                return False
        return True

    def _preempt(self, sequence: Sequence) -> None:
        """Drop all that was computed; the sequence is the first to be admitted again."""
        self.cache.release(sequence.table)
        sequence.computed = 0
        sequence.preemptions += 1
        sequence.state = State.WAITING
        self.preemptions += 1
        self._waiting.appendleft(sequence)

    def _admit(self, step: Step, budget: int) -> None:
        while self._waiting and budget > 0 and len(self.running) < self._max_running:
            sequence = self._waiting[0]
            length = len(sequence.tokens)
            hits = self.cache.lookup(sequence.table, length)
            if not self.cache.fits(length, hits):
                return
            cached = len(hits) * self.cache.block_size
            chunk = self._chunk(sequence, cached, budget)
            self.cache.allocate(sequence.table, cached + chunk.tokens, hits)
            self._waiting.popleft()
            self._start(sequence, cached)
            step.chunks.append(chunk)
            budget -= chunk.tokens

    def _start(self, sequence: Sequence, cached: int) -> None:
        sequence.computed = cached
        sequence.state = State.RUNNING
        self.running.append(sequence)
        if sequence.cached is None:
            sequence.cached = cached
            self.prefix_queries += len(sequence.tokens)
            self.prefix_hits += cached

    def _chunk(self, sequence: Sequence, computed: int, budget: int) -> Chunk:
        remaining = len(sequence.tokens) - computed
        return Chunk(sequence, computed, min(remaining, self._longest_chunk, budget))

    def _extend_hashes(self, sequence: Sequence) -> None:
        sequence.table.extend_hashes(sequence.tokens, self.cache.block_size, sequence.salt)
