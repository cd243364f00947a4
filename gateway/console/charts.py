"""Apache ECharts' options for the console's charts. Pure.

Text and rules have no colours here: the style sheet gives them, so that they follow light and dark.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from math import ceil, floor, log2
from typing import Any

from gateway.console.past import COLUMNS, Heat

ARM_COLOURS = ("#2a7de1", "#e0701a", "#1a9c74", "#b554a8", "#b58900", "#5b6abf")
"""By position in the configuration, so that an arm has its colour everywhere; they differ for the
colour-blind as well, and stand out on white as on black."""

_DASHES = {"P50": "solid", "P90": "dashed", "P99": "dotted"}
_GRID = {"left": 56, "right": 16, "top": 34, "bottom": 28}
_RULE = {"lineStyle": {"color": "rgba(128,128,128,0.25)"}}
_MILLISECONDS = "v => v >= 1000 ? Number((v / 1000).toPrecision(3)) + ' s' : v + ' ms'"
_POINT = (
    "points => (points[0].axisValue / 60).toFixed(1) + ' min\\n' + points.map(point => "
    "point.seriesId + '  ' + (point.value[1] == null ? '-' : point.value[1] + ' ms')).join('\\n')"
)
_AGO = "value => value === 0 ? 'now' : (value / 60) + ' min'"

Points = Sequence[tuple[float, float | None]]


def colour(position: int) -> str:
    return ARM_COLOURS[position % len(ARM_COLOURS)]


def quantile_lines(
    lines: Mapping[tuple[str, str], Points], arms: Sequence[str], span: float
) -> dict[str, Any]:
    """TTFT over time, a line an arm and quantile."""
    return {
        "animation": False,
        "aria": _said("Time to first token of each arm over time"),
        "grid": _GRID,
        "legend": {"top": 0},
        "tooltip": {"trigger": "axis", "renderMode": "richText", ":formatter": _POINT},
        "xAxis": {
            "type": "value",
            "min": -span,
            "max": 0,
            "interval": span / 5,
            "splitLine": {"show": False},
            "axisLabel": {":formatter": _AGO},
        },
        "yAxis": {
            "type": "log",
            "logBase": 2,
            **_limits(points for points in lines.values()),
            "splitLine": _RULE,
            "axisLine": {"onZero": False},
            "axisLabel": {":formatter": _MILLISECONDS},
        },
        "series": [
            {
                "type": "line",
                "id": f"{arm} {name}",
                "name": arm,
                "data": points,
                "symbol": "none",
                "connectNulls": False,
                "lineStyle": {"type": _DASHES[name], "width": 2},
                "itemStyle": {"color": colour(arms.index(arm))},
            }
            for (arm, name), points in lines.items()
        ],
    }


def _said(description: str) -> dict[str, Any]:
    """For who does not see the chart: what it is. Its figures stand in text beside it."""
    return {"enabled": True, "label": {"description": description}}


def _limits(lines: Iterable[Points]) -> dict[str, float]:
    """Powers of two around all values, so that the axis does not tremble with each of them."""
    values = [value for points in lines for _, value in points if value]
    if not values:
        return {"min": 8, "max": 1024}
    lowest, highest = floor(log2(min(values))), ceil(log2(max(values)))
    return {"min": 2.0**lowest, "max": 2.0 ** max(highest, lowest + 1)}


def heatmap(heat: Heat, arm: str, position: int, span: float) -> dict[str, Any]:
    """How an arm's TTFT was spread over time."""
    step = span / COLUMNS
    ago = [_minutes(step * (COLUMNS - number)) for number in range(COLUMNS)]
    return {
        "animation": False,
        "aria": _said(f"How the time to first token of {arm} was spread over time"),
        "grid": {**_GRID, "top": 10},
        "tooltip": {"renderMode": "richText", ":formatter": _CELL},
        "xAxis": {
            "type": "category",
            "data": ago,
            "axisTick": {"show": False},
            "axisLabel": {"interval": COLUMNS // 5 - 1},
        },
        "yAxis": {
            "type": "category",
            "data": [_time(bound) for bound in heat.rows],
            "axisTick": {"show": False},
            "axisLabel": {"interval": len(heat.rows) // 12},
        },
        "visualMap": {
            "show": False,
            "min": 0,
            "max": 60,
            "inRange": {"color": [f"{colour(position)}18", colour(position)]},
        },
        "series": [{"type": "heatmap", "name": arm, "data": heat.cells[arm]}],
    }


_CELL = "cell => cell.data[2] + ' % of the requests, ' + cell.name"


def arrivals(runs: Mapping[str, Points], arms: Sequence[str]) -> dict[str, Any]:
    """What two answers brought over the milliseconds since they were asked for."""
    return {
        "animation": False,
        "aria": _said("What each answer brought over time"),
        "grid": {**_GRID, "bottom": 42},
        "legend": {"top": 0},
        "tooltip": {"trigger": "axis", "renderMode": "richText"},
        "xAxis": {
            "type": "value",
            "min": 0,
            "name": "ms since the request was sent",
            "nameLocation": "middle",
            "nameGap": 26,
            "splitLine": {"show": False},
        },
        "yAxis": {"type": "value", "minInterval": 1, "splitLine": _RULE},
        "series": [
            {
                "type": "line",
                "name": arm,
                "step": "end",
                "data": points,
                "symbolSize": 3,
                "itemStyle": {"color": colour(arms.index(arm))},
            }
            for arm, points in runs.items()
        ],
    }


def _minutes(seconds: float) -> str:
    return f"-{seconds / 60:.3g} min"


def _time(milliseconds: float) -> str:
    if milliseconds == float("inf"):
        return "> 600 s"
    return f"{milliseconds / 1000:.3g} s" if milliseconds >= 1000 else f"{milliseconds:.3g} ms"
