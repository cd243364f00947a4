"""Charts of single requests, and which of many are drawn."""

from __future__ import annotations

import random
from dataclasses import replace
from itertools import pairwise

import pytest

from gateway.bench.report import points
from gateway.bench.report.looks import looks
from gateway.bench.report.points import Point, thinned
from tests.bench.made import failed, round_of
from tests.bench.report.made import LOAD, result_of, samples


def test_few_points_are_all_kept_in_order() -> None:
    some = [Point(3, 1.0), Point(1, 2.0), Point(2, None)]
    assert thinned(some, 10) == [Point(1, 2.0), Point(3, 1.0)]


def test_thinning_keeps_the_slowest_and_spreads_over_the_rest() -> None:
    chance = random.Random(1)
    many = [Point(n, chance.expovariate(1 / 100)) for n in range(20_000)]
    kept = thinned(many, 1500)
    assert 1200 < len(kept) <= 1500
    slowest = sorted(many, key=lambda one: -(one.ttft or 0))[:200]
    assert set(map(id, slowest)) <= set(map(id, kept))
    assert all(b.x - a.x < 40 for a, b in pairwise(kept))


def test_what_thinning_left_out_is_said() -> None:
    result = result_of([round_of("a", 1, samples([float(n % 97) for n in range(4000)]))])
    chart = points.by_length(result, looks(["a"]))
    assert chart.figure is not None
    drawn = len(chart.figure["data"][0]["x"])
    (said,) = [note for note in chart.notes if note.startswith("Of 4,000")]
    assert said.startswith(f"Of 4,000 requests of a, {drawn:,} are drawn: the slowest 40 and")


def test_of_very_many_it_does_not_say_that_all_slow_ones_are_drawn(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """From 75,000 requests on, the slowest 1 % are more than half of what may be drawn."""
    monkeypatch.setattr(points, "MOST", 10)
    result = result_of([round_of("a", 1, samples([float(n) for n in range(4000)]))])
    chart = points.by_length(result, looks(["a"]))
    assert chart.figure is not None
    drawn = chart.figure["data"][0]["y"]
    assert [value in drawn for value in (3994.0, 3995.0, 3999.0)] == [False, True, True]
    assert any("are drawn: the slowest 5 and" in note for note in chart.notes)


def test_lengths_are_grouped_evenly_and_alike_for_all_arms() -> None:
    slow = samples([10.0 * n for n in range(1, 17)], "b")
    result = result_of([round_of("a", 1, samples([5.0] * 16)), round_of("b", 1, slow)])
    chart = points.by_length(result, looks(["a", "b"]))
    assert chart.table is not None and chart.figure is not None
    assert len(chart.table.rows) == 2 * points.GROUPS
    assert chart.table.rows[8] == ("b", "1,000-1,010", "2", "49.8 %", "15 ms", "19 ms")
    line = chart.figure["data"][3]
    assert (line["x"][0], line["y"][0]) == (1005.0, 15.0)
    assert (line["x"][-1], line["y"][-1]) == (1145.0, 155.0)


def test_prompts_of_one_length_show_nothing_and_that_is_said() -> None:
    result = result_of([round_of("a", 1, samples([5.0] * 16, growth=0))])
    chart = points.by_length(result, looks(["a"]))
    assert chart.table is not None
    assert [row[1:3] for row in chart.table.rows] == [("1,000", "16")]
    assert any("cannot tell what length does" in note for note in chart.notes)


def test_characters_stand_in_for_tokens_that_no_reply_counts() -> None:
    some = [replace(one, prompt_tokens=None, prompt_characters=4000) for one in samples([5.0, 6.0])]
    chart = points.by_length(result_of([round_of("a", 1, some)]), looks(["a"]))
    assert chart.figure is not None and chart.table is not None
    assert chart.figure["layout"]["xaxis"]["title"]["text"] == "prompt, characters"
    assert chart.table.rows[0][1:4] == ("4,000", "2", "-")
    assert any("lengths are in characters" in note for note in chart.notes)


def test_only_an_open_loop_is_shown_over_time() -> None:
    some = [*samples([float(n) for n in range(1, 21)]), failed(due_ms=1950.0)]
    closed = result_of([round_of("a", 1, some)])
    assert points.over_time(closed, looks(["a"])) is None
    opened = replace(closed, load=replace(LOAD, request_rate=10.0, concurrency=None))
    chart = points.over_time(opened, looks(["a"]))
    assert chart is not None and chart.table is not None and chart.figure is not None
    assert chart.figure["data"][0]["x"][:3] == [0.0, 0.1, 0.2]
    assert chart.table.rows[0] == ("a", "0.0-0.1", "2", "0", "1.5 ms", "1.9 ms")
    assert chart.table.rows[-1][:4] == ("a", "1.8-1.9", "3", "1")
