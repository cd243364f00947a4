"""Rounds put together: medians with their spread, and what may be said of a difference.

A difference is called one only if the spreads of enough rounds do not overlap, and then with the
chance that this happens among equals: with n rounds each, 2 of C(2n, n) orders are separate.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from itertools import combinations
from math import comb

from gateway.bench.analysis.percentiles import spread
from gateway.bench.results import ArmSummary, Comparison, ErrorKind, Round, Sample, Spread

FEWEST_ROUNDS = 3
COMPARED = ("p50_ttft_ms", "p90_ttft_ms", "p99_ttft_ms")
ALSO_WITH_TOKENS = ("median_itl_ms", "p90_itl_ms")
NAMES = {
    "p50_ttft_ms": "P50 TTFT",
    "p90_ttft_ms": "P90 TTFT",
    "p99_ttft_ms": "P99 TTFT",
    "median_itl_ms": "median inter-token latency",
    "p90_itl_ms": "P90 inter-token latency",
}
ENGINE_FIGURES = ("hit_rate", "kv_usage_peak")


def summarise(
    arms: Iterable[str],
    rounds: Sequence[Round],
    engines: Mapping[str, Mapping[str, str | int | float | bool | None]],
) -> tuple[ArmSummary, ...]:
    """One summary an arm, in the order given.

    Args:
        rounds: without the warm-up.
        engines: what is known of each arm's engines.
    """
    return tuple(
        _arm(arm, [one for one in rounds if one.arm == arm], engines.get(arm, {})) for arm in arms
    )


def _arm(
    arm: str, rounds: Sequence[Round], engine: Mapping[str, str | int | float | bool | None]
) -> ArmSummary:
    samples = [sample for one in rounds for sample in one.samples]
    columns: dict[str, list[float | None]] = {
        name: [one.figures.get(name) for one in rounds]
        for name in (rounds[0].figures if rounds else ())
    }
    columns |= {name: [measured(one)[name] for one in rounds] for name in measured_names()}
    spreads = {name: spread(values) for name, values in columns.items()}
    return ArmSummary(
        arm=arm,
        rounds=len(rounds),
        requests=len(samples),
        figures={name: found for name, found in spreads.items() if found is not None},
        errors=dict(Counter(_kind(s) for s in samples if s.error is not None).most_common()),
        backends=dict(Counter(s.backend for s in samples if s.backend).most_common()),
        served=dict(Counter(s.arm for s in samples if s.arm).most_common()),
        engine=engine,
    )


def measured_names() -> tuple[str, ...]:
    """The figures that come from engines and GPUs."""
    return (*ENGINE_FIGURES, "gpu_memory_peak", "gpu_utilisation")


def measured(one: Round) -> dict[str, float | None]:
    """What engines and GPUs told in a round: of several, the lowest hit rate, the fullest memory
    and the busiest GPU's utilisation.

    Only those of the round's arm count, where it is known whose they are: another arm's idle. A
    round without an arm is split among all of them.
    """
    engines = [use for use in one.engines if not one.arm or use.arm in ("", one.arm)]
    gpus = [use for use in one.gpus if not one.arm or use.arm in ("", one.arm)]
    return {
        "hit_rate": _lowest(use.hit_rate for use in engines),
        "kv_usage_peak": _highest(use.kv_usage_peak for use in engines),
        "gpu_memory_peak": _highest(use.memory_peak for use in gpus),
        "gpu_utilisation": _highest(use.utilisation for use in gpus),
    }


def compare(arms: Sequence[ArmSummary], confounded: bool) -> tuple[Comparison, ...]:
    """Every pair of arms, the first named as base.

    Args:
        confounded: the arms were not tried under equal conditions.
    """
    return tuple(
        _comparison(figure, base, other, confounded)
        for base, other in combinations(arms, 2)
        for figure in (*COMPARED, *ALSO_WITH_TOKENS)
        if figure in base.figures and figure in other.figures
    )


def _comparison(figure: str, base: ArmSummary, other: ArmSummary, confounded: bool) -> Comparison:
    a, b = base.figures[figure], other.figures[figure]
    rounds = min(_known(a), _known(b))
    apart = a.high < b.low or b.high < a.low
    separate = apart and rounds >= FEWEST_ROUNDS and not confounded
    return Comparison(
        figure=figure,
        base=base.arm,
        other=other.arm,
        difference=round(b.median - a.median, 3),
        ratio=round(b.median / a.median, 4) if a.median else None,
        separate=separate,
        sentence=_sentence(NAMES[figure], base.arm, other.arm, a, b, rounds, confounded),
    )


def _sentence(
    name: str, base: str, other: str, a: Spread, b: Spread, rounds: int, confounded: bool
) -> str:
    figures = f"{name}: {other} {_shown(b)} ms, {base} {_shown(a)} ms"
    if rounds == 1:
        return f"{figures}. One round proves nothing: run at least {FEWEST_ROUNDS}."
    if rounds < FEWEST_ROUNDS:
        return f"{figures}. {rounds} rounds are too few to tell: run at least {FEWEST_ROUNDS}."
    if a.low <= b.high and b.low <= a.high:
        return f"{figures}. The spreads overlap, so no difference is shown."
    if confounded:
        return f"{figures}. Confounded (see below): no difference between configurations is shown."
    word = "later" if b.median > a.median else "sooner"
    by = abs(b.median / a.median - 1) if a.median else 0.0
    return (
        f"{figures}. {other} is {100 * by:.0f} % {word}; the spreads do not overlap, which "
        f"{rounds} rounds of equals would show in 1 of {comb(2 * rounds, rounds) // 2} comparisons."
    )


def _shown(one: Spread) -> str:
    if one.low == one.high:
        return f"{one.median:.4g}"
    return f"{one.median:.4g} ({one.low:.4g}-{one.high:.4g})"


def _known(one: Spread) -> int:
    return sum(value is not None for value in one.values)


def _kind(sample: Sample) -> str:
    if sample.error is ErrorKind.STATUS:
        return f"{ErrorKind.STATUS} {sample.status}"
    return str(sample.error)


def _highest(values: Iterable[float | None]) -> float | None:
    return max((value for value in values if value is not None), default=None)


def _lowest(values: Iterable[float | None]) -> float | None:
    return min((value for value in values if value is not None), default=None)
