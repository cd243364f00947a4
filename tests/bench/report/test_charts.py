"""Charts of whole rounds: what is drawn is what was measured."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from gateway.bench.report import charts
from gateway.bench.report.looks import Look, looks
from gateway.bench.report.parts import Chart
from gateway.bench.results import BenchResult, EngineUse, ErrorKind
from tests.bench.made import failed, round_of
from tests.bench.report.made import result_of, samples, two_arms, used


def seen(result: BenchResult) -> dict[str, Look]:
    return dict(looks([arm.arm for arm in result.arms]))


def traces(chart: Chart) -> list[dict[str, Any]]:
    assert chart.figure is not None
    return list(chart.figure["data"])


def test_the_distribution_is_of_all_complete_replies_of_all_rounds() -> None:
    late = [*samples([10.0, 30.0]), failed(ErrorKind.TIMEOUT, ttft_ms=9000.0)]
    result = result_of([round_of("a", 1, samples([40.0, 20.0])), round_of("a", 2, late)])
    chart = charts.distribution(result, seen(result))
    curve, marks = traces(chart)
    assert (curve["x"], curve["y"]) == ([10.0, 20.0, 30.0, 40.0], [0.25, 0.5, 0.75, 1.0])
    assert (marks["x"], marks["y"]) == ([25.0, 37.0, 39.7], [0.5, 0.9, 0.99])
    assert marks["text"] == ["P50", "P90", "P99"]
    assert chart.table is not None
    assert list(chart.table.rows) == [("a", "4", "10 ms", "25 ms", "37 ms", "39.7 ms", "40 ms")]
    assert "a: P50 25 ms, P90 37 ms, P99 39.7 ms." in chart.said


def test_a_long_curve_is_thinned_and_says_so_but_its_marks_are_of_all() -> None:
    values = [float(n) for n in range(1, 5002)]
    result = result_of([round_of("a", 1, samples(values)), round_of("b", 1, samples([5.0] * 9))])
    chart = charts.distribution(result, seen(result))
    long, marks, short, _ = traces(chart)
    assert isinstance(long["x"], list) and isinstance(short["x"], list)
    assert (len(long["x"]), len(short["x"])) == (charts.STEPS, 9)
    assert (long["x"][0], long["x"][-1]) == (1.0, 5001.0)
    assert marks["x"] == [2501.0, 4501.0, 4951.0]
    told = [note for note in chart.notes if "1,000 evenly spaced" in note]
    assert len(told) == 1 and "curve of a is" in told[0]


@pytest.mark.parametrize(("slowest", "scale"), [(150.0, None), (5000.0, "log"), (0.0, None)])
def test_all_arms_share_a_scale_which_is_logarithmic_where_they_are_far_apart(
    slowest: float, scale: str | None
) -> None:
    arms = [round_of("a", 1, samples([100.0, 120.0])), round_of("b", 1, samples([slowest]))]
    chart = charts.distribution(result := result_of(arms), seen(result))
    assert chart.figure is not None
    assert chart.figure["layout"]["xaxis"].get("type") == scale
    assert ("The scale of time is logarithmic." in chart.notes) is (scale == "log")


def test_the_trend_has_a_value_a_round_and_gaps_where_a_round_has_none() -> None:
    nothing = round_of("a", 2, [failed()])
    rounds = [round_of("a", 1, samples([100.0])), nothing, round_of("a", 3, samples([90.0]))]
    result = result_of(rounds)
    chart = charts.trend(result, seen(result))
    (line,) = traces(chart)
    assert (line["x"], list(line["y"])) == ([1, 2, 3], [100.0, None, 90.0])
    assert chart.table is not None
    assert list(chart.table.rows) == [("1", "100 ms"), ("2", "-"), ("3", "90 ms")]


def test_memory_stands_against_the_p90_of_the_same_round() -> None:
    result = two_arms()
    kv, gpu = charts.memory(result, seen(result))
    assert [trace["x"] for trace in traces(kv)] == [[0.1, 0.2, pytest.approx(0.3)]] * 2
    assert [trace["y"] for trace in traces(kv)] == [[108.1, 118.1, 128.1], [208.1, 228.1, 248.1]]
    assert gpu.table is not None
    assert gpu.table.rows[0] == ("chunk-512", "1", "50 %", "108.1 ms")


def test_memory_that_was_not_measured_is_absent_with_the_reason() -> None:
    one = round_of("a", 1, samples([100.0]))
    result = result_of([used(one, None)])
    kv, gpu = charts.memory(result, seen(result))
    assert kv.figure is None and "no engine was asked (--engine" in kv.absent
    assert gpu.figure is None and "no GPU was looked at" in gpu.absent
    silent = replace(one, engines=(EngineUse(name="b", absent="its /metrics is no vLLM's"),))
    kv, _ = charts.memory(result_of([silent]), seen(result))
    assert kv.absent == "The KV cache's use was not measured: its /metrics is no vLLM's."
