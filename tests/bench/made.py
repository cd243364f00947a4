"""Samples, rounds and summaries made up for tests."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from gateway.bench.analysis.figures import figures
from gateway.bench.analysis.summary import summarise
from gateway.bench.results import ArmSummary, ClientCost, ErrorKind, Round, Sample

COST = ClientCost(cpu_ms_per_request=0.2, cpu_share=0.1, send_ms=0.1)


def ok(ttft: float, **changes: Any) -> Sample:
    """A complete reply."""
    whole = Sample(number=0, due_ms=0.0, ttft_ms=ttft, e2e_ms=ttft)
    return replace(whole, **changes)


def failed(kind: ErrorKind = ErrorKind.TIMEOUT, **changes: Any) -> Sample:
    return replace(Sample(number=0, due_ms=0.0, error=kind), **changes)


def round_of(arm: str, number: int, samples: Sequence[Sample], **changes: Any) -> Round:
    """A round that took a second."""
    whole = Round(
        arm=arm,
        number=number,
        position=0,
        started="2026-01-01T00:00:00.000+00:00",
        figures=figures(samples, 1.0, None),
        client=COST,
        samples=tuple(samples),
    )
    return replace(whole, **changes)


def arms_of(
    backends: Sequence[str] = ("b",), /, **ttfts: Sequence[float]
) -> tuple[ArmSummary, ...]:
    """Arms, given the TTFT of each of their rounds.

    Args:
        backends: of each arm, which serve its requests in turn; the arm's name is put before.
    """
    rounds = [
        round_of(
            arm,
            number,
            [ok(ttft, arm=arm, backend=f"{arm}-{name}") for name in backends for _ in range(10)],
        )
        for arm, values in ttfts.items()
        for number, ttft in enumerate(values, 1)
    ]
    return summarise(ttfts, rounds, {})
