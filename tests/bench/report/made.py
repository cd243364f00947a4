"""Results made up for tests of the report."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from gateway.bench.analysis import fairness, thresholds
from gateway.bench.analysis.summary import compare, summarise
from gateway.bench.results import BenchResult, EngineUse, GpuUse, Load, Round, Sample
from tests.bench.made import ok, round_of

LOAD = Load(
    workload="shared-prefix",
    api="chat",
    requests=10,
    concurrency=32,
    request_rate=None,
    burstiness=1.0,
    output_tokens=1,
    rounds=3,
    seed=7,
)


def samples(
    ttfts: Sequence[float], arm: str = "", *, length: int = 1000, growth: int = 10
) -> list[Sample]:
    """One of each TTFT, a tenth of a second and so many tokens apart."""
    return [
        ok(
            ttft,
            number=number,
            due_ms=100.0 * number,
            arm=arm,
            backend=f"b-{arm}",
            prompt_tokens=length + growth * number,
            cached_tokens=length // 2,
        )
        for number, ttft in enumerate(ttfts)
    ]


def used(one: Round, kv: float | None, gpu: float | None = None) -> Round:
    """With what an engine and a GPU told."""
    gpus = () if gpu is None else (GpuUse(name="0", arm=one.arm, memory_peak=gpu),)
    return replace(one, engines=(EngineUse(name="b", arm=one.arm, kv_usage_peak=kv),), gpus=gpus)


def result_of(rounds: Sequence[Round], **changes: Any) -> BenchResult:
    """A whole result of rounds."""
    names = list(dict.fromkeys(one.arm for one in rounds))
    arms = summarise(names, rounds, {})
    against = fairness.confounds(arms)
    whole = BenchResult(
        date="2026-01-01T00:00:00.000+00:00",
        url="http://127.0.0.1:8080",
        model="m",
        load=LOAD,
        arms=arms,
        rounds=tuple(rounds),
        comparisons=compare(arms, bool(against)),
        thresholds=thresholds.check(arms, thresholds.defaults(shares_prefix=True)),
        remarks=against,
        gateway_version="0.0.1",
    )
    return replace(whole, **changes)


def two_arms(ttfts: Mapping[str, Sequence[float]] | None = None, **changes: Any) -> BenchResult:
    """Three rounds of two arms, the second twice as late, with KV cache and GPU memory."""
    base = ttfts or {"chunk-512": (100.0, 110.0, 120.0), "chunk-64": (200.0, 220.0, 240.0)}
    rounds = [
        used(
            round_of(arm, number, samples([value + n for n in range(10)], arm)),
            0.1 * number,
            0.5,
        )
        for arm, values in base.items()
        for number, value in enumerate(values, 1)
    ]
    return result_of(rounds, **changes)
