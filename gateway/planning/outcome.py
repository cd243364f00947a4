"""Times as they were measured, and as the simulator has them, by figure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from gateway.bench.analysis.percentiles import percentile
from gateway.planning.replay import Machine
from gateway.planning.traffic import Request
from gateway.simulator.virtual import Served


def _both() -> dict[str, list[float]]:
    return {"ttft": [], "tpot": []}


@dataclass(frozen=True, slots=True)
class Outcome:
    """Seconds by figure, `ttft` and `tpot`, of those requests whose figure was measured."""

    measured: dict[str, list[float]] = field(default_factory=_both)
    predicted: dict[str, list[float]] = field(default_factory=_both)


def outcomes(replayed: Iterable[tuple[Request, Served]], machine: Machine) -> Outcome:
    """What a client sees of each request that was measured, and what it saw."""
    found = Outcome()
    for request, served in replayed:
        if request.ttft is not None:
            found.measured["ttft"].append(request.ttft)
            found.predicted["ttft"].append(served.ttft + machine.overhead)
        if request.tpot is not None and served.tpot is not None:
            found.measured["tpot"].append(request.tpot)
            found.predicted["tpot"].append(served.tpot)
    return found


def at(values: Sequence[float], percent: float) -> float:
    """A percentile of values in any order."""
    return percentile(sorted(values), percent)
