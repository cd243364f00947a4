"""Measurements made up by a machine whose parameters are known, and files that hold them."""

from __future__ import annotations

import json
import random
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from gateway.bench.analysis.summary import summarise
from gateway.bench.results import BenchResult, Load, Sample, encode
from gateway.planning.replay import Machine, replay
from gateway.planning.traffic import Request, Traffic
from gateway.simulator.latency import StepLatency
from tests.bench.made import round_of

KNOWN = Machine(
    latency=StepLatency(base=0.012, per_token=5e-5, per_pair=6e-8),
    overhead=0.004,
    block_size=16,
    max_num_seqs=32,
)
START = datetime(2026, 1, 1, tzinfo=UTC)


def requests(count: int, *, seed: int = 1, rate: float | None = None) -> tuple[Request, ...]:
    """Prompts of 50 to 3,000 tokens, half of them mostly cached; at a rate or all at once."""
    source = random.Random(seed)
    at, found = 0.0, []
    for number in range(count):
        prompt = round(50 * 60 ** source.random())
        cached = prompt // 32 * 16 if number % 2 else 0
        found.append(Request(at=at, prompt=prompt, cached=cached, output=source.randint(1, 12)))
        at += source.expovariate(rate) if rate else 0.0
    return tuple(found)


def timed(traffic: Traffic, machine: Machine = KNOWN) -> Traffic:
    """The same traffic with the times that `machine` takes."""
    times = {id(one.request): one for one in replay(traffic, machine, traffic.chunk)}

    def measured(request: Request) -> Request:
        its = times[id(request)]
        ttft, served = its.ttft(machine.overhead), its.served
        took = ttft + served.last - served.first
        return replace(request, ttft=ttft, tpot=served.tpot, took=took)

    return replace(traffic, requests=tuple(map(measured, traffic.requests)))


def family(
    *chunks: int, users: int | None = 6, rate: float | None = None, seed: int = 0
) -> list[Traffic]:
    """A closed loop, or an open one, at each chunk size."""
    return [
        timed(
            Traffic(
                name=f"{n}",
                chunk=n,
                users=users,
                requests=requests(60, seed=n + seed, rate=rate),
            )
        )
        for n in chunks
    ]


def result(traffic: Traffic, **engine: int) -> BenchResult:
    """As `gateway bench` would have written it, of one arm named `a`."""
    samples = [
        Sample(
            number=number,
            due_ms=one.at * 1000,
            ttft_ms=None if one.ttft is None else one.ttft * 1000,
            e2e_ms=((one.ttft or 0.0) + (one.tpot or 0.0) * (one.output - 1)) * 1000,
            prompt_tokens=one.prompt,
            cached_tokens=one.cached,
            completion_tokens=one.output,
        )
        for number, one in enumerate(traffic.requests)
    ]
    rounds = (round_of("a", 1, samples),)
    load = Load(
        workload="replay",
        api="chat",
        requests=len(samples),
        concurrency=traffic.users,
        request_rate=None if traffic.users else 5.0,
        burstiness=1.0,
        output_tokens=None,
        rounds=1,
        seed=1,
    )
    arms = summarise(["a"], rounds, {"a": engine})
    return BenchResult(
        date=START.isoformat(), url="", model="m", load=load, arms=arms, rounds=rounds
    )


def write(path: Path, traffic: Traffic, **engine: int) -> Path:
    path.write_bytes(encode(result(traffic, **engine)))
    return path


def log_line(request: Request, **changes: Any) -> dict[str, Any]:
    """A line of the access log; times count from `received`, which is 5 ms before it was sent."""
    first = None if request.ttft is None else 5.0 + request.ttft * 1000
    later = None if first is None else first + (request.tpot or 0.0) * 1000 * (request.output - 1)
    return {
        "ts": (START + timedelta(seconds=request.at)).isoformat(),
        "id": f"r{request.at}",
        "model": "m",
        "arm": "a",
        "backend": "b0",
        "stream": True,
        "outcome": "ok",
        "sent_ms": 5.0,
        "first_token_ms": first,
        "last_token_ms": later,
        "prompt_tokens": request.prompt,
        "cached_tokens": request.cached,
        "completion_tokens": request.output,
    } | changes


def write_log(path: Path, lines: Sequence[dict[str, Any]]) -> Path:
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return path
