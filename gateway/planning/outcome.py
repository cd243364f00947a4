"""Times as they were measured, and as the simulator has them, by figure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from gateway.bench.analysis.percentiles import percentile
from gateway.planning.replay import Machine, Replayed


def _both() -> dict[str, list[float]]:
    return {"ttft": [], "tpot": []}


@dataclass(frozen=True, slots=True)
class Outcome:
    """Seconds by figure, `ttft` and `tpot`, of those requests whose figure was measured."""

    measured: dict[str, list[float]] = field(default_factory=_both)
    predicted: dict[str, list[float]] = field(default_factory=_both)


def outcomes(replayed: Iterable[Replayed], machine: Machine) -> Outcome:
    """What a client sees of each request that was measured, and what it saw."""
    found = Outcome()
    for one in replayed:
        measured, predicted = one.request, one.served
        if measured.ttft is not None:
            found.measured["ttft"].append(measured.ttft)
            found.predicted["ttft"].append(one.ttft(machine.overhead))
        if measured.tpot is not None and predicted.tpot is not None:
            found.measured["tpot"].append(measured.tpot)
            found.predicted["tpot"].append(predicted.tpot)
    return found


def at(values: Sequence[float], percent: float) -> float:
    """A percentile of values in any order."""
    return percentile(sorted(values), percent)
