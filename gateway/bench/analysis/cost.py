"""What the client itself costs, so that nobody takes it for the server's."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import fmean, median

from gateway.bench.analysis.percentiles import percentile
from gateway.bench.results import ClientCost, Sample

MOST = 0.05
"""Of the median TTFT; with more, the client is part of what is measured."""


def client_cost(
    samples: Sequence[Sample], *, cpu: float, duration: float, delays: Sequence[float]
) -> ClientCost:
    """The cost of one round.

    Args:
        cpu: seconds of processor time that the client used during the round.
        duration: of the round, in seconds.
        delays: of the pulses during it, in seconds.
    """
    send = fmean(sample.client_ms for sample in samples) if samples else 0.0
    ordered = sorted(delay * 1000 for delay in delays)
    stamp = fmean(ordered) if ordered else None
    times = [s.ttft_ms for s in samples if s.ttft_ms is not None]
    share = (send + (stamp or 0.0)) / median(times) if times and stamp is not None else None
    return ClientCost(
        cpu_ms_per_request=round(cpu * 1000 / len(samples), 3) if samples else 0.0,
        cpu_share=round(cpu / duration, 4) if duration > 0 else 0.0,
        send_ms=round(send, 3),
        stamp_ms=None if stamp is None else round(stamp, 3),
        stamp_p99_ms=round(percentile(ordered, 99), 3) if ordered else None,
        ttft_share=None if share is None else round(share, 4),
    )
