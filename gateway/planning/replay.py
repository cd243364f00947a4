"""Traffic on a simulated engine of any chunk size.

What was found in the prefix cache is taken from the traffic instead of being found again: on vLLM
V1 it does not depend on the chunk size. The KV cache is taken to be large enough for all that runs.
"""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from dataclasses import dataclass
from heapq import nlargest
from typing import Annotated

from msgspec import Meta

from gateway.planning.traffic import Request, Traffic
from gateway.simulator.latency import StepLatency
from gateway.simulator.prefix_cache import BlockTable, PrefixCache
from gateway.simulator.scheduler import Scheduler
from gateway.simulator.sequence import Sequence as Prompt
from gateway.simulator.virtual import Served, serve

PAUSE = 1e-5
"""Seconds until a user's next request: however short, the engine's next step has begun."""
LONGEST = 3600.0
"""Seconds of a step or of what comes on top: no engine has such, a file edited by hand may."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Machine:
    """An engine on some hardware, whatever its chunk size.

    Attributes:
        latency: how long a step takes.
        overhead: seconds of a request outside the engine's steps: HTTP, tokenizer, its client.
        block_size: tokens in a block of the KV cache.
        max_num_seqs: sequences that run at once, at most.
    """

    latency: StepLatency
    overhead: Annotated[float, Meta(ge=0, le=LONGEST)]
    block_size: Annotated[int, Meta(ge=1, le=2**20)]
    max_num_seqs: Annotated[int, Meta(ge=1, le=2**31)]


@dataclass(frozen=True, slots=True)
class Replayed:
    """One request, as it was and as the simulated engine serves it.

    Attributes:
        resting: whether it came to an engine that nobody kept busy, or at a time of its own. One
            that follows another of its user while the engine goes on with others joins the next
            step however long its way was, so that the way takes nothing away from its time.
    """

    request: Request
    served: Served
    resting: bool

    def ttft(self, overhead: float) -> float:
        """Seconds to the first token as the client sees them."""
        return self.served.ttft + (overhead if self.resting else 0.0)


def replay(traffic: Traffic, machine: Machine, chunk: int) -> list[Replayed]:
    """Serve `traffic` in chunks of `chunk` tokens; in order of completion."""
    prompts = [_prompt(number, one) for number, one in enumerate(traffic.requests)]
    scheduler = _scheduler(traffic.requests, machine, chunk)
    requests = dict(zip(prompts, traffic.requests, strict=True))
    users = traffic.users
    if users is None:
        arrivals = [(request.at, prompt) for prompt, request in requests.items()]
        served = serve(scheduler, machine.latency, arrivals)
    else:
        first = [(0.0, prompt) for prompt in prompts[:users]]
        served = serve(scheduler, machine.latency, first, prompts[users:], PAUSE)
    return [
        Replayed(
            requests[one.sequence],
            one,
            resting=users is None or not one.arrived or not one.joined_late,
        )
        for one in served
    ]


def _prompt(number: int, request: Request) -> Prompt:
    """As many tokens of one prompt that all share as were cached, then tokens of its own."""
    shared, own = array("I", [0]), array("I", [number + 1])
    tokens = shared * request.cached + own * (request.prompt - request.cached)
    return Prompt(tokens, request.output)


def _scheduler(requests: Sequence[Request], machine: Machine, chunk: int) -> Scheduler:
    """One that holds the prompt that all share, so that nothing else takes its blocks."""
    # As many as the longest need that may run at once, and as the shared prompt holds.
    needs = ((one.prompt + one.output) // machine.block_size + 2 for one in requests)
    longest = nlargest(min(machine.max_num_seqs, len(requests)), needs)
    blocks = longest[0] + sum(longest)
    cache = PrefixCache(blocks, machine.block_size)
    scheduler = Scheduler(
        cache,
        max_num_batched_tokens=chunk,
        max_num_seqs=min(machine.max_num_seqs, chunk),
    )
    shared = array("I", [0]) * max(one.cached for one in requests)
    table = BlockTable()
    table.extend_hashes(shared, machine.block_size)
    cache.allocate(table, len(shared))
    return scheduler
