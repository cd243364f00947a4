"""The article's thresholds: whether they hold, and what to check where they do not."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import isfinite

from gateway.bench.results import ArmSummary, ThresholdCheck


@dataclass(frozen=True, slots=True)
class Threshold:
    """One limit.

    Attributes:
        figure: a name of `ArmSummary.figures`.
        limit: the default: milliseconds, or a share from 0 to 1.
        upper: the figure must not exceed it; else it must reach it.
        told: what the figure is called.
        advice: what to check where it does not hold, as a sentence.
        unmeasured: why it may be unknown, and what would make it known.
        failures: the share of requests that may fail before it is not judged. Of a percentile that
            is what lies above it, since what failed never had a first token; the others say
            nothing of a load of which most was turned away.
    """

    figure: str
    limit: float
    upper: bool
    told: str
    advice: str
    unmeasured: str
    failures: float = 0.50


ROOM = 0.50
"""Of the KV cache: with less in use at its peak, a low hit rate has another cause."""

NO_GPU = "no GPU was looked at (NVML on this machine, or --dcgm)"
NO_ENGINE = "no engine was asked (--engine NAME=URL, or an admin key)"

THRESHOLDS: Mapping[str, Threshold] = {
    "p90": Threshold(
        "p90_ttft_ms", 350, True, "P90 TTFT",
        "The budget is not in force, or the engine is not tuned: check that prefix caching is on, "
        "and the chunk size against the engine's version",
        "no request succeeded", failures=0.10,
    ),
    "p99": Threshold(
        "p99_ttft_ms", 280, True, "P99 TTFT",
        "The prefix reuse budget is not in force, or too low for this traffic",
        "no request succeeded", failures=0.01,
    ),
    "memory": Threshold(
        "gpu_memory_peak", 0.70, True, "GPU memory peak",
        "Check --gpu-memory-utilization, which vLLM reserves at its start whatever it needs, and "
        "that the budget is in force",
        NO_GPU,
    ),
    "gpu": Threshold(
        "gpu_utilisation", 0.78, False, "GPU utilisation",
        "The GPU waits: send more at a time, or see whether small chunks or the host's CPU hold "
        "it up",
        NO_GPU,
    ),
    "hit-rate": Threshold(
        "hit_rate", 0.80, False, "prefix cache hit rate",
        "The cache does not fit the traffic: raise --gpu-memory-utilization, or lower the "
        "budget's threshold",
        NO_ENGINE,
    ),
}  # fmt: skip


def check(arms: Iterable[ArmSummary], limits: Mapping[str, float]) -> tuple[ThresholdCheck, ...]:
    """Each limit against the median of each arm's rounds.

    Args:
        limits: by name of `THRESHOLDS`; those left out are off.
    """
    return tuple(_check(arm, name, limit) for arm in arms for name, limit in limits.items())


def defaults(*, shares_prefix: bool) -> dict[str, float]:
    """The limits that are on unless told otherwise.

    Without a shared prefix there is nothing to hit and no article to compare with. P99 holds only
    where a reuse budget is in force, which nobody can see from here.
    """
    names = ("p90", "memory", "gpu", "hit-rate") if shares_prefix else ("memory", "gpu")
    return {name: THRESHOLDS[name].limit for name in names}


def set_limits(limits: Mapping[str, float], wanted: Sequence[str]) -> dict[str, float]:
    """Limits with changes such as `p90=500`, `hit-rate=off`.

    Raises:
        ValueError: one of them cannot be read, said in words.
    """
    changed = dict(limits)
    for one in wanted:
        name, _, value = one.partition("=")
        if name not in THRESHOLDS:
            raise ValueError(f"{name or one!r} is none of {', '.join(THRESHOLDS)}")
        if value == "off":
            changed.pop(name, None)
            continue
        try:
            changed[name] = float(value)
            if not isfinite(changed[name]):
                raise ValueError
        except ValueError:
            raise ValueError(f"{one} is no NAME=NUMBER and no NAME=off") from None
    return changed


def _check(arm: ArmSummary, name: str, limit: float) -> ThresholdCheck:
    threshold = THRESHOLDS[name]
    spread = arm.figures.get(threshold.figure)
    value = spread.median if spread else None
    held, found = _verdict(threshold, limit, value, arm)
    sign = "≤" if threshold.upper else "≥"
    return ThresholdCheck(
        arm=arm.arm,
        name=name,
        limit=limit,
        value=value,
        held=held,
        sentence=f"{threshold.told} {sign} {_shown(threshold, limit)}: {found}.",
    )


def _verdict(
    threshold: Threshold, limit: float, value: float | None, arm: ArmSummary
) -> tuple[bool | None, str]:
    if value is None:
        return None, f"not measured, {threshold.unmeasured}"
    failed = sum(arm.errors.values())
    if failed > threshold.failures * arm.requests:
        most = f"{100 * threshold.failures:.3g} %"
        return None, f"not judged, {failed} of {arm.requests} requests failed, more than {most}"
    if value <= limit if threshold.upper else value >= limit:
        return True, f"holds, at {_shown(threshold, value)}"
    return False, f"does not hold, at {_shown(threshold, value)}. {_advice(threshold, limit, arm)}"


def _advice(threshold: Threshold, limit: float, arm: ArmSummary) -> str:
    kv = arm.figures.get("kv_usage_peak")
    if threshold.figure != "hit_rate" or kv is None or kv.high >= ROOM:
        return threshold.advice
    return (
        f"Memory is hardly the cause, at a KV peak of {100 * kv.high:.3g} %: either the shared "
        "prefix is too short, since this rate takes --prefix-tokens of at least "
        f"{_shown(threshold, limit)} of the prompt's length, or prefix caching is off"
    )


def _shown(threshold: Threshold, value: float) -> str:
    if threshold.figure.endswith("_ms"):
        return f"{value:.4g} ms"
    return f"{100 * value:.3g} %"
