"""What recorded traffic would have come to at other chunk sizes, and how far to trust it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from gateway.planning.calibration import Calibration
from gateway.planning.fit import FIGURES
from gateway.planning.log import Recorded
from gateway.planning.outcome import Outcome, at, outcomes
from gateway.planning.replay import replay
from gateway.planning.traffic import Traffic

BEHIND = 0.1
"""Of the recorded time: an engine that is busy for as much longer after it cannot keep up."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    """A percentile in seconds.

    Attributes:
        margin: how far from `value` the truth may be, as a part of it: `Calibration.margin`; None
            where that is not known, or nothing was predicted.
    """

    name: str
    percent: int
    value: float
    margin: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What one chunk size would do.

    Attributes:
        chunk: None for what was recorded.
        behind: simulated engines that could not keep up with their traffic.
    """

    chunk: int | None
    figures: tuple[Figure, ...]
    behind: tuple[str, ...] = ()


def answer(recorded: Recorded, calibration: Calibration, chunk: int) -> Answer:
    """Replay every engine's traffic at `chunk`, all engines taken together."""
    machine = calibration.machine
    together, behind = Outcome(), []
    for traffic in recorded.engines:
        replayed = replay(traffic, machine, chunk)
        for name, times in outcomes(replayed, machine).predicted.items():
            together.predicted[name].extend(times)
        end = max(one.served.last for one in replayed)
        if end > _allowed(traffic):
            behind.append(traffic.name)
    figures = _figures(together.predicted)
    return Answer(
        chunk=chunk,
        figures=tuple(
            replace(one, margin=calibration.margin(one.name, one.percent, chunk)) for one in figures
        ),
        behind=tuple(behind),
    )


def observed(recorded: Recorded) -> Answer:
    """What was measured of the same requests."""
    times: dict[str, list[float]] = {"ttft": [], "tpot": []}
    for traffic in recorded.engines:
        for request in traffic.requests:
            times["ttft"] += [] if request.ttft is None else [request.ttft]
            times["tpot"] += [] if request.tpot is None else [request.tpot]
    return Answer(chunk=None, figures=_figures(times))


def advice(answers: Sequence[Answer]) -> list[str]:
    """Which chunk sizes are worth an experiment, by each percentile of the time to first token.

    A size at which an engine cannot keep up is out of question; without a known margin only the
    best is named.
    """
    able = [one for one in answers if one.chunk is not None and not one.behind]
    percents = [percent for name, percent in FIGURES if name == "ttft"]
    said = []
    for percent in percents:
        found = sorted(
            (
                (figure, one.chunk)
                for one in able
                for figure in one.figures
                if (figure.name, figure.percent) == ("ttft", percent)
            ),
            key=lambda pair: pair[0].value,
        )
        if len(found) < 2:
            continue
        best, chunk = found[0]
        reach = best.value * (1 + (best.margin or 0.0))
        near = [
            str(other)
            for figure, other in found[1:]
            if figure.value * (1 - (figure.margin or 0.0)) <= reach
        ]
        alike = f"; within the errors it may be {', '.join(near)} as well" if near else ""
        said.append(f"Lowest TTFT P{percent}: chunk size {chunk}{alike}.")
    return said


def _figures(times: dict[str, list[float]]) -> tuple[Figure, ...]:
    return tuple(
        Figure(name=name, percent=percent, value=at(times[name], percent))
        for name, percent in FIGURES
        if times[name]
    )


def _allowed(traffic: Traffic) -> float:
    """When an engine that keeps up has ended: some time after the last request came."""
    longest = max(one.took or 0.0 for one in traffic.requests)
    return traffic.requests[-1].at * (1 + BEHIND) + 2 * longest
