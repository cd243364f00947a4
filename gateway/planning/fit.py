"""The simulator's parameters from measured times, and how well they predict what was not used.

With the order of steps known, every time is linear in the parameters: TTFT = a · steps + b ·
tokens + c · pairs + overhead, less what had passed of the step that the request came in. The order
depends on the times only a little, in a closed loop hardly at all, so replaying and fitting in
turns settles after a few of both.

In a closed loop a request whose engine is busy with others waits for their steps from the moment
the one before it ended; the overhead passes meanwhile, and such times say nothing of it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from statistics import median

from gateway.errors import GatewayError
from gateway.extras import install
from gateway.planning.outcome import at, outcomes
from gateway.planning.replay import SHORTEST_PAUSE, Machine, replay
from gateway.planning.traffic import Traffic
from gateway.simulator.latency import StepLatency

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
        measured, predicted: seconds, the median over the rounds of that chunk size.
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
    for _ in range(MOST_TURNS):
        earlier = _parameters(machine)
        a, b, c, overhead = _solve(traffic, machine)
        machine = replace(machine, latency=StepLatency(a, b, c), overhead=overhead)
        if _settled(earlier, _parameters(machine)):
            break
    return machine


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


def _solve(traffic: Sequence[Traffic], machine: Machine) -> tuple[float, float, float, float]:
    """The parameters with the order of steps as `machine` has it."""
    try:
        import numpy as np
        from scipy.optimize import least_squares
    except ImportError as error:
        raise GatewayError(f"Fitting needs the package {error.name}: {install('bench')}.") from None
    rows, times = [], []
    for one in traffic:
        for request, served in replay(one, machine, one.chunk):
            if request.ttft is None:
                continue
            busy = one.users is not None and served.arrived > 0 and served.joined_late > 0
            pause = max(machine.overhead, SHORTEST_PAUSE) if busy else 0.0
            rows.append((*served.until_first, 0.0 if busy else 1.0))
            times.append(request.ttft + served.joined_late - pause)
    design = np.array(rows) / np.array(times)[:, None]
    # Pairs are counted in millions and steps in ones; scipy's own scaling starts from the result.
    scale = np.linalg.norm(design, axis=0)
    scaled = design / np.where(scale == 0, 1.0, scale)
    solved = least_squares(
        lambda x: scaled @ x - 1.0,
        np.full(4, 1.0),
        jac=lambda _: scaled,
        bounds=(0.0, np.inf),
        loss="soft_l1",
        f_scale=OUTLIER,
    )
    # What no time depends on is not known, and taken to be nothing.
    a, b, c, overhead = (float(x / s) if s else 0.0 for x, s in zip(solved.x, scale, strict=True))
    if (scaled[:, :3] @ solved.x[:3]).max() < EXPLAINED:
        raise GatewayError("The measured times depend on nothing that was computed.")
    return a, b, c, overhead


def _parameters(machine: Machine) -> tuple[float, ...]:
    latency = machine.latency
    return latency.base, latency.per_token, latency.per_pair, machine.overhead


def _settled(earlier: tuple[float, ...], now: tuple[float, ...]) -> bool:
    return all(
        abs(new - old) <= SETTLED * max(old, new) for old, new in zip(earlier, now, strict=True)
    )
