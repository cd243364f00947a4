"""Charts of whole rounds: how TTFT is distributed, its trend, and memory beside it. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from math import ceil, floor, log10

from gateway.bench.analysis.percentiles import percentile
from gateway.bench.analysis.summary import measured
from gateway.bench.analysis.thresholds import NO_ENGINE, NO_GPU
from gateway.bench.report.looks import Look, layout, titled
from gateway.bench.report.parts import Chart, Table, milliseconds, share, told
from gateway.bench.results import ArmSummary, BenchResult, Round

STEPS = 1000
"""Points of a distribution's curve, where there are more requests than that."""

MARKED = (50, 90, 99)
GRID = (0, 0.25, 0.5, 0.75, 0.9, 0.99)
WIDE = 20.0
"""From this ratio of the largest to the smallest TTFT on, its axis is logarithmic."""

P90 = "p90_ttft_ms"


def ttfts(result: BenchResult, arm: str) -> list[float]:
    """Of all complete replies in all rounds, in order of size."""
    return sorted(
        sample.ttft_ms
        for one in result.rounds
        if one.arm == arm
        for sample in one.samples
        if sample.error is None and sample.ttft_ms is not None
    )


def distribution(result: BenchResult, looks: Mapping[str, Look]) -> Chart:
    """The share of replies that began within a time, a curve an arm."""
    found = {arm: values for arm in looks if (values := ttfts(result, arm))}
    title = "How TTFT is distributed"
    if not found:
        return Chart(key="distribution", title=title, absent="No reply was complete.")
    low = min(values[0] for values in found.values())
    high = max(values[-1] for values in found.values())
    logarithmic = low > 0 and high / low > WIDE
    axis = titled("TTFT, ms", **_range(0 if not logarithmic else low, high, logarithmic))
    data = [
        trace for arm, values in found.items() for trace in _curve(values, looks[arm], len(found))
    ]
    return Chart(
        key="distribution",
        title=title,
        notes=tuple(_distribution_notes(found, logarithmic)),
        said=f"Cumulative distribution of the time to first token. {_in_words(found)}",
        figure={
            "data": data,
            "layout": layout(
                axis, titled("share of replies", tickformat=".0%", tickvals=GRID, range=[0, 1.02])
            ),
        },
        table=Table(
            "TTFT of all complete replies of all rounds together",
            ("Arm", "Replies", "Fastest", "P50", "P90", "P99", "Slowest"),
            [
                (
                    told(arm),
                    f"{len(values):,}",
                    milliseconds(values[0]),
                    *(milliseconds(percentile(values, percent)) for percent in MARKED),
                    milliseconds(values[-1]),
                )
                for arm, values in found.items()
            ],
        ),
    )


def _range(low: float, high: float, logarithmic: bool) -> dict[str, object]:
    if not logarithmic:
        return {"range": [0, high * 1.03 or 1]}
    powers = range(floor(log10(low)), ceil(log10(high)) + 1)
    ticks = [digit * 10.0**power for power in powers for digit in (1, 2, 5)]
    return {
        "type": "log",
        "range": [log10(low) - 0.03, log10(high) + 0.03],
        "tickvals": ticks,
        "ticktext": [f"{tick:,g}" for tick in ticks],
    }


def _distribution_notes(found: Mapping[str, Sequence[float]], logarithmic: bool) -> Iterator[str]:
    yield (
        "A curve further left is sooner. The marks are P50, P90 and P99 of all rounds together, "
        "which are not the medians of rounds in the table above."
    )
    if logarithmic:
        yield "The scale of time is logarithmic."
    thinned = [told(arm) for arm, values in found.items() if len(values) > STEPS]
    if thinned:
        yield (
            f"The curve of {', '.join(thinned)} is drawn through {STEPS:,} evenly spaced shares; "
            "the marks and the table are of all replies."
        )


def _curve(values: Sequence[float], look: Look, arms: int) -> Iterator[dict[str, object]]:
    count = len(values)
    if count > STEPS:
        shares = [number / (STEPS - 1) for number in range(STEPS)]
        x = [round(percentile(values, 100 * one), 2) for one in shares]
    else:
        shares = [(number + 1) / count for number in range(count)]
        x = [round(value, 2) for value in values]
    yield {
        "type": "scatter",
        "mode": "lines",
        "name": look.label,
        "legendgroup": look.label,
        "x": x,
        "y": [round(one, 5) for one in shares],
        "line": {**look.line(), "shape": "hv"},
        "hovertemplate": "%{y:.1%} within %{x:,.1f} ms<extra>%{fullData.name}</extra>",
    }
    yield {
        "type": "scatter",
        "mode": "markers+text" if arms <= 2 else "markers",
        "name": look.label,
        "legendgroup": look.label,
        "showlegend": False,
        "x": [round(percentile(values, percent), 2) for percent in MARKED],
        "y": [percent / 100 for percent in MARKED],
        "text": [f"P{percent}" for percent in MARKED],
        "textposition": "bottom right",
        "cliponaxis": False,
        "marker": look.marker(10),
        "hovertemplate": "%{text} %{x:,.1f} ms<extra>%{fullData.name}</extra>",
    }


def _in_words(found: Mapping[str, Sequence[float]]) -> str:
    return " ".join(
        f"{told(arm)}: "
        + ", ".join(f"P{one} {milliseconds(percentile(values, one))}" for one in MARKED)
        + "."
        for arm, values in found.items()
    )


def trend(result: BenchResult, looks: Mapping[str, Look]) -> Chart:
    """P90 of each round, a line an arm."""
    lines = {arm.arm: arm.figures[P90].values for arm in result.arms if P90 in arm.figures}
    title = "P90 TTFT of each round"
    if not lines:
        return Chart(key="trend", title=title, absent="No round has a P90.")
    rounds = max(map(len, lines.values()))
    data = [
        {
            "type": "scatter",
            "mode": "lines+markers",
            "name": looks[arm].label,
            "x": list(range(1, len(values) + 1)),
            "y": values,
            "line": looks[arm].line(),
            "marker": looks[arm].marker(),
            "hovertemplate": "round %{x}: %{y:,.1f} ms<extra>%{fullData.name}</extra>",
        }
        for arm, values in lines.items()
    ]
    x = titled("round", range=[0.5, rounds + 0.5])
    if rounds <= 12:
        x |= {"tickvals": list(range(1, rounds + 1))}
    return Chart(
        key="trend",
        title=title,
        notes=(
            "Lines that rise or fall together are the machine's or its neighbours' doing; arms "
            "differ where their lines stay apart.",
        ),
        said="P90 of the time to first token over the rounds. "
        + " ".join(f"{told(arm.arm)}: {_path(arm)}." for arm in result.arms if arm.arm in lines),
        figure={"data": data, "layout": layout(x, titled("P90 TTFT, ms", rangemode="tozero"))},
        table=Table(
            "P90 TTFT of each round",
            ("Round", *map(told, lines)),
            [
                (
                    str(number + 1),
                    *(
                        milliseconds(values[number] if number < len(values) else None)
                        for values in lines.values()
                    ),
                )
                for number in range(rounds)
            ],
        ),
    )


def _path(arm: ArmSummary) -> str:
    values = [milliseconds(value) for value in arm.figures[P90].values]
    return ", ".join(values) if len(values) <= 5 else f"{values[0]} to {values[-1]}"


def memory(result: BenchResult, looks: Mapping[str, Look]) -> tuple[Chart, Chart]:
    """P90 of each round against the fullest KV cache, and against the fullest GPU memory."""
    engines = sorted({use.absent for one in result.rounds for use in one.engines if use.absent})
    why = "; ".join(engines) or NO_ENGINE
    return (
        _against(
            result.rounds, looks, "kv_usage_peak", "KV cache in use, peak of the round",
            "KV cache against TTFT", f"The KV cache's use was not measured: {why}.",
        ),
        _against(
            result.rounds, looks, "gpu_memory_peak", "GPU memory in use, peak of the round",
            "GPU memory against TTFT", f"GPU memory was not measured: {NO_GPU}.",
        ),
    )  # fmt: skip


def _against(
    rounds: Sequence[Round],
    looks: Mapping[str, Look],
    figure: str,
    axis: str,
    title: str,
    absent: str,
) -> Chart:
    key = figure.removesuffix("_peak").replace("_", "-")
    found = [
        (one, peak, ttft)
        for one in rounds
        if (peak := measured(one)[figure]) is not None
        and (ttft := one.figures.get(P90)) is not None
    ]
    if not found:
        return Chart(key=key, title=title, absent=absent)
    data = [
        {
            "type": "scatter",
            "mode": "markers",
            "name": look.label,
            "x": [peak for one, peak, _ in found if one.arm == arm],
            "y": [ttft for one, _, ttft in found if one.arm == arm],
            "text": [f"round {one.number}" for one, *_ in found if one.arm == arm],
            "marker": look.marker(12),
            "hovertemplate": "%{text}: %{x:.1%} full, P90 %{y:,.1f} ms"
            "<extra>%{fullData.name}</extra>",
        }
        for arm, look in looks.items()
    ]
    rows = [
        (told(one.arm), str(one.number), share(peak), milliseconds(ttft))
        for one, peak, ttft in found
    ]
    return Chart(
        key=key,
        title=title,
        notes=("A mark is one arm's turn of a round; further left is less memory, lower sooner.",),
        said=f"{axis}, against P90 of the time to first token: {len(found)} turns of rounds.",
        figure={
            "data": data,
            "layout": layout(
                titled(axis, tickformat=".3~p", rangemode="tozero"),
                titled("P90 TTFT, ms", rangemode="tozero"),
            ),
        },
        table=Table(title, ("Arm", "Round", "Peak", "P90 TTFT"), rows),
    )
