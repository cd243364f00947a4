"""The figures of one round, under vLLM's names."""

from __future__ import annotations

from collections.abc import Sequence

from gateway.bench.analysis.percentiles import described
from gateway.bench.results import Sample


def figures(
    samples: Sequence[Sample], duration: float, slo_ttft_ms: float | None
) -> dict[str, float | None]:
    """Latencies are those of complete replies; failed ones are counted beside them.

    Args:
        duration: seconds from the first request's being due to the last one's end.
        slo_ttft_ms: a complete reply whose first token came within it is good.
    """
    done = [sample for sample in samples if sample.error is None]
    output = _total([sample.completion_tokens for sample in done])
    within = sum(slo_ttft_ms is not None and _ttft(s) <= slo_ttft_ms for s in done)
    return {
        "duration": round(duration, 4),
        "completed": len(done),
        "failed": len(samples) - len(done),
        "total_input_tokens": _total([sample.prompt_tokens for sample in done]),
        "total_output_tokens": output,
        "request_throughput": _rate(len(done), duration),
        "output_throughput": _rate(output, duration),
        "request_goodput": None if slo_ttft_ms is None else _rate(within, duration),
        **described("ttft", map(_ttft, done)),
        **described("tpot", (value for s in done if (value := _tpot(s)) is not None)),
        **described("itl", (gap for sample in done for gap in sample.itl_ms)),
        **described("e2el", (s.e2e_ms for s in done if s.e2e_ms is not None)),
    }


def _ttft(sample: Sample) -> float:
    assert sample.ttft_ms is not None, "a complete reply has a first token"
    return sample.ttft_ms


def _tpot(sample: Sample) -> float | None:
    """Milliseconds for each token after the first."""
    if sample.e2e_ms is None or sample.completion_tokens is None or sample.completion_tokens < 2:
        return None
    return (sample.e2e_ms - _ttft(sample)) / (sample.completion_tokens - 1)


def _total(counts: Sequence[int | None]) -> int | None:
    """The sum; None where any reply did not say, for a part of a sum is no sum."""
    return None if not counts or None in counts else sum(count or 0 for count in counts)


def _rate(count: int | None, duration: float) -> float | None:
    return None if count is None or duration <= 0 else round(count / duration, 4)
