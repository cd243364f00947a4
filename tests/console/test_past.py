from __future__ import annotations

import pytest

from gateway.console import charts
from gateway.console.past import COLUMNS, POINTS, Past
from gateway.console.reading import read
from gateway.console.watch import Watch
from tests.console.pages import page, requests, tokens, ttft

SPAN = 300.0
NOW = 1000.0


def fast(count: int) -> tuple[int, ...]:
    """So many of 0.1 to 0.2 s."""
    return (0, count, count, count)


def slow(count: int) -> tuple[int, ...]:
    """So many of 0.2 to 0.4 s."""
    return (0, 0, count, count)


@pytest.fixture
def past() -> Past:
    """Arm `a` is fast for the last minute, one request a second; `b` slow, three a second."""
    watch = Watch()
    for second in range(61):
        series = [
            ttft("a", fast(second)),
            ttft("b", slow(3 * second)),
            requests("a", second),
            requests("b", 3 * second - second // 10),
            requests("b", second // 10, "timeout"),
            tokens("a", 100 * second, 25 * second),
        ]
        watch.add(NOW - 60 + second, read(page(*series)))
    return Past(watch, "m", ["a", "b", "idle"], SPAN, NOW)


def test_figures_say_what_they_rest_on(past: Past) -> None:
    found = past.figures()
    a, b, idle = found["a"], found["b"], found["idle"]
    assert (a.requests, a.errors, a.measured, a.share) == (60, 0, 60, 0.25)
    assert (b.requests, b.errors, b.share) == (180, 6, 0.75)
    assert a.quantiles == pytest.approx({"P50": 150.0, "P90": 190.0, "P99": 199.0})
    assert b.quantiles == pytest.approx({"P50": 300.0, "P90": 380.0, "P99": 398.0})
    assert a.jitter == pytest.approx(199 / 150)
    assert (a.cached_share, b.cached_share) == (0.25, None)
    assert (idle.requests, idle.share, idle.jitter) == (0, 0.0, None)
    assert set(idle.quantiles.values()) == {None}


def test_lines_have_gaps_where_nothing_was_measured(past: Past) -> None:
    lines = past.lines()
    assert set(lines) == {(arm, q) for arm in ("a", "b", "idle") for q in ("P50", "P90", "P99")}
    points = lines["b", "P50"]
    assert len(points) == POINTS
    assert points[-1] == (0.0, 300.0)
    known = [seconds for seconds, value in points if value is not None]
    assert -60 <= known[0] <= -55
    assert all(value is None for _, value in lines["idle", "P99"])


def test_heatmaps_share_one_scale_and_show_shares(past: Past) -> None:
    heat = past.heat()
    assert heat.rows == (200.0, 400.0)
    assert {(row, share) for _, row, share in heat.cells["a"]} == {(0, 100.0)}
    assert {(row, share) for _, row, share in heat.cells["b"]} == {(1, 100.0)}
    columns = [column for column, _, _ in heat.cells["b"]]
    assert columns == list(range(COLUMNS - 12, COLUMNS))
    assert heat.cells["idle"] == []


def test_the_line_charts_axis_ends_at_powers_of_two_and_arms_keep_their_colour(past: Past) -> None:
    options = charts.quantile_lines(past.lines(), ["a", "b", "idle"], SPAN)
    assert (options["yAxis"]["min"], options["yAxis"]["max"]) == (128.0, 512.0)
    colours = {one["name"]: one["itemStyle"]["color"] for one in options["series"]}
    assert colours == {arm: charts.colour(n) for n, arm in enumerate(("a", "b", "idle"))}
    empty = charts.quantile_lines({}, [], SPAN)
    assert empty["yAxis"]["min"] < empty["yAxis"]["max"]


def test_the_axes_of_a_heatmap_are_in_words(past: Past) -> None:
    options = charts.heatmap(past.heat(), "b", 1, SPAN)
    assert options["yAxis"]["data"] == ["200 ms", "400 ms"]
    assert (options["xAxis"]["data"][0], len(options["xAxis"]["data"])) == ("-5 min", COLUMNS)
