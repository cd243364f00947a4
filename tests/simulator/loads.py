"""Sequences for tests: prompts by the length of what they share and of what is theirs."""

from __future__ import annotations

import math
import random
from array import array

from gateway.simulator.prefix_cache import PrefixCache
from gateway.simulator.presets import PRESETS
from gateway.simulator.scheduler import Scheduler
from gateway.simulator.sequence import Sequence
from gateway.simulator.virtual import Served, serve

OWN = 1_000_000


def sequence(
    own: int, max_tokens: int = 1, *, shared: int = 0, name: int = 0, salt: str = ""
) -> Sequence:
    """`shared` tokens that are the same for all, then `own` tokens no other `name` has."""
    prompt = [*range(shared), *range(OWN * (name + 1), OWN * (name + 1) + own)]
    return Sequence(array("I", prompt), max_tokens, salt=salt)


def scheduler(
    budget: int, *, seqs: int = 64, blocks: int = 1000, block_size: int = 4, threshold: int = 0
) -> Scheduler:
    return Scheduler(
        PrefixCache(blocks, block_size),
        max_num_batched_tokens=budget,
        max_num_seqs=seqs,
        long_prefill_token_threshold=threshold,
    )


def article_load(shared: int = 1600, count: int = 200) -> list[Sequence]:
    """One long prompt, short questions of 12 to 24 tokens, one token each."""
    lengths = random.Random(1)
    return [
        sequence(lengths.randint(12, 24), shared=shared, name=number) for number in range(count)
    ]


def served(
    preset: str,
    chunk: int,
    load: list[Sequence],
    concurrency: int,
    *,
    seqs: int = 64,
    pause: float = 0.0,
) -> list[Served]:
    """`load` in a closed loop on an empty engine of `preset`; `pause` as of `serve`."""
    machine = PRESETS[preset]
    engine = scheduler(
        chunk,
        seqs=seqs,
        blocks=machine.kv_cache_tokens // machine.block_size,
        block_size=machine.block_size,
    )
    first = [(0.0, one) for one in load[:concurrency]]
    return serve(engine, machine.latency, first, load[concurrency:], pause)


def percentile(served: list[Served], percent: float) -> float:
    """Of the TTFT, by nearest rank, in milliseconds."""
    ordered = sorted(one.ttft for one in served)
    return ordered[math.ceil(len(ordered) * percent / 100) - 1] * 1000
