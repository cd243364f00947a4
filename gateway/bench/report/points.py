"""Charts of single requests: TTFT by length of the prompt and by time of sending. Pure."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import ceil
from typing import Any

from gateway.bench.analysis.percentiles import percentile
from gateway.bench.report.looks import Look, layout, titled
from gateway.bench.report.parts import NONE, Chart, Table, milliseconds, share, told
from gateway.bench.results import BenchResult, Sample

MOST = 1500
"""Points of an arm in one chart."""

SLOWEST = 0.01
"""The part of all requests, the slowest, that thinning leaves in, up to half of what it may."""

GROUPS = 8
SLICES = 10
FEW = 8
"""So many lengths have a tick each."""

ALIKE = 1.1
"""Prompts are about equally long if the longest is within this ratio of the shortest."""


@dataclass(frozen=True, slots=True)
class Point:
    """Attributes:
    x: what the chart is about: a length, or seconds.
    ttft: in ms; None of a request that failed.
    cached: the part of its prompt that was found in the cache, from 0 to 1.
    """

    x: float
    ttft: float | None
    cached: float | None = None


Points = Mapping[str, Sequence[Point]]


def thinned(points: Sequence[Point], most: int) -> Sequence[Point]:
    """At most so many: the slowest, and of the rest, by x, one in so many."""
    known = [one for one in points if one.ttft is not None]
    if len(known) <= most:
        return sorted(known, key=lambda one: one.x)
    known.sort(key=lambda one: -(one.ttft or 0.0))
    slow = _slowest(len(known), most)
    rest = sorted(known[slow:], key=lambda one: one.x)
    step = ceil(len(rest) / (most - slow))
    return sorted([*known[:slow], *rest[::step]], key=lambda one: one.x)


def _slowest(count: int, most: int) -> int:
    return min(ceil(count * SLOWEST), most // 2)


def by_length(result: BenchResult, looks: Mapping[str, Look]) -> Chart:
    """TTFT of each request against how long its prompt was, with the median of each length."""
    counted = all(
        sample.prompt_tokens is not None for sample in _samples(result) if sample.error is None
    )
    unit = "tokens" if counted else "characters"
    found = _points(result, looks, lambda sample: _length(sample, counted))
    title = "TTFT by prompt length"
    if not found:
        return Chart(key="length", title=title, absent="No reply was complete.")
    lengths = [one.x for points in found.values() for one in points]
    edges, lowest = _edges(lengths), min(lengths)
    lines = {arm: _medians(points, edges) for arm, points in found.items()}
    notes = tuple(_length_notes(found, unit, counted))
    return Chart(
        key="length",
        title=title,
        notes=notes,
        said=f"Time to first token against the prompt's length in {unit}: a mark a request, and "
        "a line through the medians.",
        figure={
            "data": [
                trace
                for arm, points in found.items()
                for trace in _cloud(points, lines[arm], looks[arm], "%{x:,} " + unit)
            ],
            "layout": layout(
                _lengths(f"prompt, {unit}", edges, lowest), titled("TTFT, ms", rangemode="tozero")
            ),
        },
        table=Table(
            f"TTFT by prompt length in {unit}: as many prompts in each row as can be",
            ("Arm", f"Prompt, {unit}", "Replies", "Cached", "P50", "P90"),
            list(_length_rows(found, edges)),
        ),
    )


def _length(sample: Sample, counted: bool) -> float | None:
    return sample.prompt_tokens if counted else sample.prompt_characters


def _edges(lengths: Sequence[float]) -> Sequence[float]:
    """Upper ends of groups of about as many each; the same for all arms."""
    ordered = sorted(lengths)
    return sorted(
        {ordered[ceil(len(ordered) * part / GROUPS) - 1] for part in range(1, GROUPS + 1)}
    )


def _lengths(title: str, edges: Sequence[float], lowest: float) -> dict[str, Any]:
    """An axis without halves of tokens."""
    near = {"dtick": 1} if edges[-1] - lowest < FEW else {}
    return titled(title, tickformat=",d", **near)


def _groups(points: Sequence[Point], edges: Sequence[float]) -> list[list[Point]]:
    found: list[list[Point]] = [[] for _ in edges]
    for one in points:
        found[next(n for n, edge in enumerate(edges) if one.x <= edge)].append(one)
    return [group for group in found if group]


def _medians(points: Sequence[Point], edges: Sequence[float]) -> list[tuple[float, float]]:
    return [
        (_median([one.x for one in group]), _median([one.ttft or 0.0 for one in group]))
        for group in _groups(points, edges)
    ]


def _median(values: Sequence[float]) -> float:
    return round(percentile(sorted(values), 50), 2)


def _length_notes(found: Points, unit: str, counted: bool) -> Iterator[str]:
    yield "A faint mark is a request; the line goes through the medians of groups by length."
    if not counted:
        yield "Replies do not say how many tokens a prompt had, so lengths are in characters."
    lengths = [one.x for points in found.values() for one in points]
    if max(lengths) <= ALIKE * min(lengths):
        yield (
            f"All prompts were about as long ({min(lengths):,.0f} to {max(lengths):,.0f} {unit}): "
            "this run cannot tell what length does."
        )
    yield from _left_out(found)


def _length_rows(found: Points, edges: Sequence[float]) -> Iterator[tuple[str, ...]]:
    for arm, points in found.items():
        for group in _groups(points, edges):
            lengths = [one.x for one in group]
            times = sorted(one.ttft for one in group if one.ttft is not None)
            cached = [one.cached for one in group if one.cached is not None]
            yield (
                told(arm),
                _span(min(lengths), max(lengths)),
                f"{len(group):,}",
                share(sum(cached) / len(cached)) if len(cached) == len(group) else NONE,
                milliseconds(percentile(times, 50)),
                milliseconds(percentile(times, 90)),
            )


def over_time(result: BenchResult, looks: Mapping[str, Look]) -> Chart | None:
    """TTFT against when requests were due; None of a closed loop, where users wait."""
    if result.load.request_rate is None:
        return None
    every = _points(result, looks, lambda sample: sample.due_ms / 1000, failed=True)
    found = {arm: good for arm, points in every.items() if (good := _complete(points))}
    title = "TTFT over the round"
    if not found:
        return Chart(key="time", title=title, absent="No reply was complete.")
    end = max(one.x for points in every.values() for one in points)
    edges = [end * (number + 1) / SLICES for number in range(SLICES - 1)] + [end]
    lines = {arm: _medians(points, edges) for arm, points in found.items()}
    return Chart(
        key="time",
        title=title,
        notes=(
            "All rounds lie on each other, from their beginning. TTFT that grows towards the end "
            "means that requests arrive faster than they are answered: then it measures how long "
            "the run was.",
            *_left_out(found),
        ),
        said="Time to first token against the time at which a request was due.",
        figure={
            "data": [
                trace
                for arm, points in found.items()
                for trace in _cloud(points, lines[arm], looks[arm], "at %{x:.1f} s")
            ],
            "layout": layout(
                titled("due, seconds into the round", rangemode="tozero"),
                titled("TTFT, ms", rangemode="tozero"),
            ),
        },
        table=Table(
            "TTFT by time of sending",
            ("Arm", "Seconds", "Due", "Failed", "P50", "P90"),
            [row for arm, points in every.items() for row in _time_rows(told(arm), points, edges)],
        ),
    )


def _time_rows(
    arm: str, points: Sequence[Point], edges: Sequence[float]
) -> Iterator[tuple[str, ...]]:
    for group in _groups(points, edges):
        times = sorted(one.ttft for one in group if one.ttft is not None)
        figures = [milliseconds(percentile(times, one)) if times else NONE for one in (50, 90)]
        ends = [one.x for one in group]
        failed = len(group) - len(times)
        yield arm, f"{min(ends):.1f}-{max(ends):.1f}", f"{len(group):,}", f"{failed:,}", *figures


def _samples(result: BenchResult) -> Iterator[Sample]:
    return (sample for one in result.rounds for sample in one.samples)


def _points(
    result: BenchResult,
    looks: Mapping[str, Look],
    x: Callable[[Sample], float | None],
    *,
    failed: bool = False,
) -> Points:
    found: dict[str, list[Point]] = defaultdict(list)
    for one in result.rounds:
        for sample in one.samples:
            good = sample.error is None and sample.ttft_ms is not None
            place = x(sample)
            if place is not None and (good or failed):
                ttft = sample.ttft_ms if good else None
                found[one.arm].append(Point(place, ttft, _cached(sample)))
    return {arm: found[arm] for arm in looks if arm in found}


def _cached(sample: Sample) -> float | None:
    if sample.cached_tokens is None or not sample.prompt_tokens:
        return None
    return sample.cached_tokens / sample.prompt_tokens


def _complete(points: Sequence[Point]) -> list[Point]:
    return [one for one in points if one.ttft is not None]


def _cloud(
    points: Sequence[Point], line: Sequence[tuple[float, float]], look: Look, where: str
) -> Iterator[dict[str, Any]]:
    drawn = thinned(points, MOST)
    yield {
        "type": "scatter",
        "mode": "markers",
        "name": look.label,
        "legendgroup": look.label,
        "showlegend": False,
        "x": [round(one.x, 3) for one in drawn],
        "y": [round(one.ttft or 0.0, 2) for one in drawn],
        "marker": look.marker(6, 0.35),
        "hovertemplate": f"%{{y:,.1f}} ms, {where}<extra>%{{fullData.name}}</extra>",
    }
    yield {
        "type": "scatter",
        "mode": "lines+markers",
        "name": look.label,
        "legendgroup": look.label,
        "x": [x for x, _ in line],
        "y": [y for _, y in line],
        "line": look.line(),
        "marker": look.marker(),
        "hovertemplate": f"median %{{y:,.1f}} ms, {where}<extra>%{{fullData.name}}</extra>",
    }


def _left_out(found: Points) -> Iterator[str]:
    for arm, points in found.items():
        if len(points) > MOST:
            drawn = len(thinned(points, MOST))
            yield (
                f"Of {len(points):,} requests of {told(arm)}, {drawn:,} are drawn: the slowest "
                f"{_slowest(len(points), MOST):,} and evenly chosen ones of the rest. Lines and "
                "table are of all."
            )


def _span(low: float, high: float) -> str:
    return f"{low:,.0f}" if low == high else f"{low:,.0f}-{high:,.0f}"
