"""What a gateway's metrics did over the last hour, kept so that a page has a past to show.

Each reading is added to what was read before, series by series, so that a gateway that restarts
and counts from zero again leaves no dent.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict, deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from gateway.console import histograms
from gateway.console.histograms import Counts
from gateway.console.reading import CACHED, PROMPT, REQUESTS, Labels, Page

KEPT = 3600.0
"""Seconds of the past."""

REJECTED = frozenset({"rejected", "client_gone"})
"""Outcomes that are not the arm's doing."""

Arm = tuple[str, str]
"""Model and arm."""


@dataclass(frozen=True, slots=True)
class Tally:
    """What an arm had done by a moment, or between two.

    Attributes:
        ttft: cumulative counts of the buckets.
    """

    ttft: Counts = ()
    requests: float = 0.0
    errors: float = 0.0
    prompt_tokens: float = 0.0
    cached_tokens: float = 0.0

    def since(self, before: Tally) -> Tally:
        return Tally(
            histograms.added(before.ttft, self.ttft),
            self.requests - before.requests,
            self.errors - before.errors,
            self.prompt_tokens - before.prompt_tokens,
            self.cached_tokens - before.cached_tokens,
        )

    @property
    def cached_share(self) -> float | None:
        return self.cached_tokens / self.prompt_tokens if self.prompt_tokens else None


NOTHING = Tally()


class Watch:
    """Takes readings in order of time and answers for any stretch of the last hour.

    Attributes:
        bounds: of the TTFT buckets in seconds, infinity last.
    """

    def __init__(self) -> None:
        self.bounds: tuple[float, ...] = ()
        self._times: deque[float] = deque()
        self._tallies: deque[Mapping[Arm, Tally]] = deque()
        self._ttft = _Growing()
        self._counters: dict[tuple[str, Labels], _Counter] = defaultdict(_Counter)

    @property
    def latest(self) -> float | None:
        """When the last reading was taken, in the clock's seconds."""
        return self._times[-1] if self._times else None

    def add(self, at: float, page: Page) -> None:
        if page.bounds and page.bounds != self.bounds:
            self._restart(page.bounds)
        self._ttft.add(page.ttft)
        for key, value in page.counters.items():
            self._counters[key].add(value)
        self._times.append(at)
        self._tallies.append(self._tally())
        while self._times[0] < at - KEPT:
            self._times.popleft()
            self._tallies.popleft()

    def between(self, arm: Arm, start: float, end: float) -> Tally:
        """What the arm did after `start` and until `end`; of what lies before the first reading
        nothing is known."""
        return self._at(arm, end).since(self._at(arm, start))

    def _at(self, arm: Arm, moment: float) -> Tally:
        if not self._times:
            return NOTHING
        index = max(0, bisect_right(self._times, moment) - 1)
        return self._tallies[index].get(arm, NOTHING)

    def _restart(self, bounds: tuple[float, ...]) -> None:
        """Other buckets cannot be added to these."""
        if self.bounds:
            self._times.clear()
            self._tallies.clear()
            self._ttft = _Growing()
        self.bounds = bounds

    def _tally(self) -> Mapping[Arm, Tally]:
        ttft: dict[Arm, Counts] = defaultdict(tuple)
        sums: dict[Arm, dict[str, float]] = defaultdict(lambda: defaultdict(float))
        for labels, counts in self._ttft.totals():
            arm = _arm(labels)
            ttft[arm] = histograms.together(ttft[arm], counts)
        for (name, labels), counter in self._counters.items():
            sums[_arm(labels)][name] += counter.total
            if name == REQUESTS and _failed(labels):
                sums[_arm(labels)]["errors"] += counter.total
        return {
            arm: Tally(
                ttft[arm],
                sums[arm][REQUESTS],
                sums[arm]["errors"],
                sums[arm][PROMPT],
                sums[arm][CACHED],
            )
            for arm in [*ttft, *(arm for arm in sums if arm not in ttft)]
        }


class _Counter:
    """A counter that does not fall when its source starts anew."""

    __slots__ = ("_base", "_last")

    def __init__(self) -> None:
        self._base = self._last = 0.0

    @property
    def total(self) -> float:
        return self._base + self._last

    def add(self, value: float) -> None:
        if value < self._last:
            self._base += self._last
        self._last = value


class _Growing:
    """Histograms that do not shrink when their source starts anew."""

    def __init__(self) -> None:
        self._base: dict[Labels, Counts] = {}
        self._last: dict[Labels, Counts] = {}

    def add(self, page: Mapping[Labels, Counts]) -> None:
        for labels, counts in page.items():
            last = self._last.get(labels, ())
            if histograms.total(counts) < histograms.total(last):
                self._base[labels] = histograms.together(self._base.get(labels, ()), last)
            self._last[labels] = counts

    def totals(self) -> Sequence[tuple[Labels, Counts]]:
        return [
            (labels, histograms.together(self._base.get(labels, ()), last))
            for labels, last in self._last.items()
        ]


def _arm(labels: Labels) -> Arm:
    named = dict(labels)
    return named.get("model", ""), named.get("arm", "")


def _failed(labels: Labels) -> bool:
    outcome = dict(labels).get("outcome", "")
    return outcome != "ok" and outcome not in REJECTED
