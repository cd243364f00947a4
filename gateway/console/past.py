"""What the overview draws of the past: lines, heatmaps and figures, from a `Watch`. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from gateway.console import histograms
from gateway.console.watch import Tally, Watch

QUANTILES = {"P50": 0.5, "P90": 0.9, "P99": 0.99}

POINTS = 120
COLUMNS = 60

WINDOW = 30.0
"""Seconds of requests that each point of a line is made of, at least."""


@dataclass(frozen=True, slots=True)
class Figures:
    """One arm over a stretch of time; times in milliseconds.

    Attributes:
        share: of the model's requests.
        quantiles: by their names in `QUANTILES`; None without requests that had a first token.
        measured: requests they rest on.
    """

    requests: int
    errors: int
    share: float | None
    measured: int
    quantiles: dict[str, float | None]
    cached_share: float | None

    @property
    def jitter(self) -> float | None:
        """P99 over P50."""
        high, middle = self.quantiles["P99"], self.quantiles["P50"]
        return high / middle if high is not None and middle else None


@dataclass(frozen=True, slots=True)
class Heat:
    """Heatmaps on one scale.

    Attributes:
        rows: the buckets' bounds in milliseconds, ascending: those that hold something.
        cells: by arm: column, row and share of the column's requests, for what is not empty.
    """

    rows: tuple[float, ...]
    cells: dict[str, list[tuple[int, int, float]]]


class Past:
    """The arms of one model over the last `span` seconds before `now`."""

    def __init__(
        self, watch: Watch, model: str, arms: Sequence[str], span: float, now: float
    ) -> None:
        self._watch = watch
        self._model = model
        self._arms = arms
        self._span = span
        self._now = now

    def figures(self) -> dict[str, Figures]:
        tallies = {arm: self._tally(arm, self._now - self._span, self._now) for arm in self._arms}
        everything = sum(tally.requests for tally in tallies.values())
        return {arm: self._figures(tally, everything) for arm, tally in tallies.items()}

    def lines(self) -> dict[tuple[str, str], list[tuple[float, float | None]]]:
        """By arm and quantile: seconds from now (negative) and milliseconds, None for a gap."""
        step = self._span / POINTS
        width = max(WINDOW, step)
        moments = [-self._span + step * number for number in range(1, POINTS + 1)]
        found: dict[tuple[str, str], list[tuple[float, float | None]]] = {}
        for arm in self._arms:
            for moment in moments:
                end = self._now + moment
                quantiles = self._quantiles(self._tally(arm, end - width, end))
                for name, value in quantiles.items():
                    found.setdefault((arm, name), []).append((round(moment, 1), _rounded(value)))
        return found

    def heat(self) -> Heat:
        step = self._span / COLUMNS
        columns = {arm: [self._column(arm, number, step) for number in range(COLUMNS)]
                   for arm in self._arms}  # fmt: skip
        rows = histograms.occupied([one for some in columns.values() for one in some])
        bounds = tuple(self._watch.bounds[row] * 1000 for row in rows)
        return Heat(bounds, {arm: _cells(some, rows) for arm, some in columns.items()})

    def _column(self, arm: str, number: int, step: float) -> histograms.Counts:
        start = self._now - self._span + step * number
        return self._tally(arm, start, start + step).ttft

    def _tally(self, arm: str, start: float, end: float) -> Tally:
        return self._watch.between((self._model, arm), start, end)

    def _quantiles(self, tally: Tally) -> dict[str, float | None]:
        seconds = {
            name: histograms.quantile(q, self._watch.bounds, tally.ttft)
            for name, q in QUANTILES.items()
        }
        return {name: None if one is None else one * 1000 for name, one in seconds.items()}

    def _figures(self, tally: Tally, everything: float) -> Figures:
        return Figures(
            requests=round(tally.requests),
            errors=round(tally.errors),
            share=tally.requests / everything if everything else None,
            measured=round(histograms.total(tally.ttft)),
            quantiles=self._quantiles(tally),
            cached_share=tally.cached_share,
        )


def _cells(columns: Sequence[histograms.Counts], rows: range) -> list[tuple[int, int, float]]:
    cells = []
    for number, cumulative in enumerate(columns):
        whole = histograms.total(cumulative)
        for row, count in enumerate(histograms.separate(cumulative)):
            if count > 0:
                cells.append((number, row - rows.start, round(100 * count / whole, 1)))
    return cells


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(value, 1)
