"""The simulator's parameters from measured times, and how well they predict what was not used.

With the order of steps known, every time is linear in the parameters: TTFT = a · steps + b ·
tokens + c · pairs + overhead, less what had passed of the step that the request came in. The order
depends on the times only a little, in a closed loop hardly at all, so replaying and fitting in
turns settles after a few of both.

The overhead is told only by requests that come to an engine at rest, or at times of their own:
`replay.Replayed` says of which.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from importlib import import_module
from statistics import median
from types import ModuleType
from typing import Any

from gateway.errors import GatewayError
from gateway.extras import install
from gateway.planning.outcome import at, outcomes
from gateway.planning.replay import Machine, replay
from gateway.planning.traffic import Traffic
from gateway.simulator.latency import StepLatency

Parameters = tuple[float, float, float, float]
"""a, b, c and the overhead."""

FIGURES = (("ttft", 50), ("ttft", 90), ("tpot", 50), ("tpot", 90))
"""What is predicted: percentiles of the time to first token and of the time of a later one."""
MOST_TURNS = 20
SETTLED = 0.005
"""Relative change of a parameter that ends the turns."""
OUTLIER = 0.1
"""Relative error from which on a request counts less: a pause of the machine is no step."""
EXPLAINED = 0.01
"""Of some request's time: if its steps took less, nothing was learned of them."""
START = StepLatency(base=0.01, per_token=0.0001, per_pair=1e-9)


@dataclass(frozen=True, slots=True, kw_only=True)
class Prediction:
    """A percentile at a chunk size that the fit had not seen.

    Attributes:
        figure: `ttft` or `tpot`.
        measured, predicted: seconds, the median over the rounds of each engine of that size.
    """

    chunk: int
    figure: str
    percent: int
    measured: float
    predicted: float

    @property
    def error(self) -> float:
        """Predicted over measured, less one."""
        return self.predicted / self.measured - 1


def fit(traffic: Sequence[Traffic], *, block_size: int, max_num_seqs: int) -> Machine:
    """The machine whose times come nearest to those measured, by relative error.

    Raises:
        GatewayError: scipy is missing, or the times tell nothing.
    """
    machine = Machine(latency=START, overhead=0.0, block_size=block_size, max_num_seqs=max_num_seqs)
    best, least = machine, math.inf
    for _ in range(MOST_TURNS):
        design = _design(traffic, machine)
        earlier = _parameters(machine)
        # In an open loop the order of steps may come and go, so the last one need not be the best.
        if (loss := _loss(design, earlier)) < least:
            best, least = machine, loss
        a, b, c, overhead = found = _solve(design)
        machine = replace(machine, latency=StepLatency(a, b, c), overhead=overhead)
        if _settled(earlier, found):
            best = machine
            break
    explained = _design(traffic, best)[:, :3] @ _parameters(best)[:3]
    if explained.max() < EXPLAINED:
        raise GatewayError("The measured times depend on nothing that was computed.")
    return best


def held_out(traffic: Sequence[Traffic], *, block_size: int, max_num_seqs: int) -> list[Prediction]:
    """Each chunk size predicted from all others; empty where there is one only."""
    chunks = sorted({one.chunk for one in traffic})
    if len(chunks) < 2:
        return []
    found = []
    for chunk in chunks:
        rest = [one for one in traffic if one.chunk != chunk]
        machine = fit(rest, block_size=block_size, max_num_seqs=max_num_seqs)
        found += predictions([one for one in traffic if one.chunk == chunk], machine)
    return found


def predictions(traffic: Sequence[Traffic], machine: Machine) -> list[Prediction]:
    """What `machine` says of traffic at one chunk size, beside what was measured."""
    turns = [outcomes(replay(one, machine, one.chunk), machine) for one in traffic]
    found = []
    for figure, percent in FIGURES:
        measured = [at(turn.measured[figure], percent) for turn in turns if turn.measured[figure]]
        predicted = [at(turn.predicted[figure], percent) for turn in turns if turn.measured[figure]]
        if measured:
            found.append(
                Prediction(
                    chunk=traffic[0].chunk,
                    figure=figure,
                    percent=percent,
                    measured=median(measured),
                    predicted=median(predicted),
                )
            )
    return found


def _design(traffic: Sequence[Traffic], machine: Machine) -> Any:
    """What each measured time is made of, with the order of steps as `machine` has it.

    Returns:
        An array of a row for each measured request: steps, tokens, pairs and whether its way
        counts, each by the time that these took; times the parameters, a row is predicted over
        measured.
    """
    rows, times = [], []
    for one in traffic:
        for each in replay(one, machine, one.chunk):
            if each.request.ttft is not None:
                rows.append((*each.served.until_first, float(each.resting)))
                times.append(each.request.ttft + each.served.joined_late)
    numpy, _ = _packages()
    return numpy.array(rows) / numpy.array(times)[:, None]


def _solve(design: Any) -> Parameters:
    """The parameters, none below 0, that bring all rows nearest to 1."""
    numpy, optimize = _packages()
    # Pairs are counted in millions and steps in ones; scipy's own scaling starts from the result.
    scale = numpy.linalg.norm(design, axis=0)
    scaled = design / numpy.where(scale == 0, 1.0, scale)
    solved = optimize.least_squares(
        lambda x: scaled @ x - 1.0,
        numpy.full(4, 1.0),
        jac=lambda _: scaled,
        bounds=(0.0, numpy.inf),
        loss="soft_l1",
        f_scale=OUTLIER,
    )
    # What no time depends on is not known, and taken to be nothing.
    a, b, c, overhead = (float(x / s) if s else 0.0 for x, s in zip(solved.x, scale, strict=True))
    return a, b, c, overhead


def _loss(design: Any, parameters: Parameters) -> float:
    """What `_solve` makes small: nearly the sum of all errors, the large ones' squares left out."""
    numpy, _ = _packages()
    errors = (design @ parameters - 1.0) / OUTLIER
    return float(numpy.sum(numpy.sqrt(1 + errors**2) - 1))


def _packages() -> tuple[ModuleType, ModuleType]:
    try:
        return import_module("numpy"), import_module("scipy.optimize")
    except ImportError as error:
        raise GatewayError(f"Fitting needs the package {error.name}: {install('bench')}.") from None


def _parameters(machine: Machine) -> Parameters:
    latency = machine.latency
    return latency.base, latency.per_token, latency.per_pair, machine.overhead


def _settled(earlier: Parameters, now: Parameters) -> bool:
    return all(
        abs(new - old) <= SETTLED * max(old, new) for old, new in zip(earlier, now, strict=True)
    )
