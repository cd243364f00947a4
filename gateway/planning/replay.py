"""Traffic on a simulated engine of any chunk size.

What was found in the prefix cache is taken from the traffic instead of being found again: on vLLM
V1 it does not depend on the chunk size. The KV cache is taken to be large enough for all that runs.
"""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from dataclasses import dataclass

from gateway.planning.traffic import Request, Traffic
from gateway.simulator.latency import StepLatency
from gateway.simulator.prefix_cache import PrefixCache
from gateway.simulator.scheduler import Scheduler
from gateway.simulator.sequence import Sequence as Prompt
from gateway.simulator.virtual import Served, serve

SHORTEST_PAUSE = 1e-5
"""Seconds until a user's next request: however short, the engine's next step has begun."""


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
    overhead: float
    block_size: int
    max_num_seqs: int


def replay(traffic: Traffic, machine: Machine, chunk: int) -> list[tuple[Request, Served]]:
    """Serve `traffic` in chunks of `chunk` tokens; in order of completion.

    `Served` tells the engine's times; a client sees `overhead` more before the first token.
    """
    prompts = [_prompt(number, one) for number, one in enumerate(traffic.requests)]
    scheduler = _scheduler(traffic.requests, machine, chunk)
    requests = dict(zip(prompts, traffic.requests, strict=True))
    if traffic.users is None:
        served = serve(
            scheduler,
            machine.latency,
            [(request.at, prompt) for prompt, request in requests.items()],
        )
    else:
        served = serve(
            scheduler,
            machine.latency,
            [(0.0, prompt) for prompt in prompts[: traffic.users]],
            prompts[traffic.users :],
            max(machine.overhead, SHORTEST_PAUSE),
        )
    return [(requests[one.sequence], one) for one in served]


def _prompt(number: int, request: Request) -> Prompt:
    """As many tokens of one prompt that all share as were cached, then tokens of its own."""
    shared, own = array("I", [0]), array("I", [number + 1])
    tokens = shared * request.cached + own * (request.prompt - request.cached)
    return Prompt(tokens, request.output)


def _scheduler(requests: Sequence[Request], machine: Machine, chunk: int) -> Scheduler:
    """One that has computed the prompt that all share."""
    longest = max(one.prompt + one.output for one in requests)
    blocks = (machine.max_num_seqs + 1) * (longest // machine.block_size + 2)
    scheduler = Scheduler(
        PrefixCache(blocks, machine.block_size),
        max_num_batched_tokens=chunk,
        max_num_seqs=min(machine.max_num_seqs, chunk),
    )
    cached = max(one.cached for one in requests)
    serve(scheduler, machine.latency, [(0.0, Prompt(array("I", [0]) * (cached + 1), 1))])
    return scheduler
