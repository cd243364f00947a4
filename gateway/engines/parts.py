"""Where a time to first token went: the gateway's own figures held against the engine's."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from gateway.records import TtftParts
from gateway.vllm.page import EnginePage, Total

# Requests that began before a scrape and ended after it are in one sum and not yet in the other.
_SLACK = 0.05


class Own(NamedTuple):
    """The gateway's sums for one backend's streamed requests.

    Attributes:
        ttft: request received to first token.
        upstream: sent to the backend to first token.
    """

    ttft: Total
    upstream: Total


class Sample(NamedTuple):
    """Both sides at one moment; `at` is in seconds of a monotonic clock."""

    at: float
    own: Own
    engine: EnginePage


def between(first: Sample, last: Sample) -> TtftParts | None:
    """The mean parts of the first tokens that came between two samples; None where there were
    none, or where the engine does not tell its own times."""
    ttft, upstream = (
        _mean(before, after) for before, after in zip(first.own, last.own, strict=True)
    )
    engine = _part(first, last, lambda page: page.ttft)
    if ttft is None or upstream is None or engine is None:
        return None
    requests = last.own.upstream.count - first.own.upstream.count
    answered = _count(first, last)
    queue = _part(first, last, lambda page: page.queue)
    prefill = _part(first, last, lambda page: page.prefill)
    return TtftParts(
        seconds=last.at - first.at,
        requests=int(requests),
        engine_requests=int(answered),
        total_ms=_ms(ttft),
        gateway_ms=_ms(ttft - upstream),
        network_ms=_ms(upstream - engine),
        engine_queue_ms=None if queue is None else _ms(queue),
        engine_prefill_ms=None if prefill is None else _ms(prefill),
        engine_other_ms=_ms(engine - (queue or 0.0) - (prefill or 0.0)),
        comparable=abs(answered - requests) <= max(1.0, _SLACK * requests),
    )


def restarted(before: EnginePage, after: EnginePage) -> bool:
    """Whether an engine has begun to count anew."""
    return any(
        one is not None and other is not None and other.count < one.count
        for one, other in ((before.ttft, after.ttft), (before.queue, after.queue))
    )


def _count(first: Sample, last: Sample) -> float:
    before, after = first.engine.ttft, last.engine.ttft
    return after.count - before.count if before and after else 0.0


def _part(first: Sample, last: Sample, part: Callable[[EnginePage], Total | None]) -> float | None:
    return _mean(part(first.engine), part(last.engine))


def _mean(before: Total | None, after: Total | None) -> float | None:
    """Seconds a request between two sums."""
    if before is None or after is None or after.count <= before.count:
        return None
    return (after.sum - before.sum) / (after.count - before.count)


def _ms(seconds: float) -> float:
    return round(seconds * 1000, 3)
