"""What the terminal shows."""

from __future__ import annotations

from dataclasses import replace
from io import StringIO

import plotext
from rich.console import Console

from gateway.bench.report.screen import plot, render
from gateway.bench.results import BenchResult, ErrorKind, Spread, ThresholdCheck
from tests.bench.made import arms_of, failed, ok, round_of
from tests.bench.test_results import LOAD

ARMS = arms_of(small=[100, 120, 110], large=[300, 310, 290])
RESULT = BenchResult(date="2026-01-01", url="http://x", model="m", load=LOAD, arms=ARMS, rounds=())


def shown(result: BenchResult) -> str:
    console = Console(width=400, file=StringIO(), record=True, markup=False)
    console.print(render(result))
    return console.export_text()


def row(text: str, name: str, number: int = 0) -> list[str]:
    """The cells of an arm in one of the tables."""
    found = [line.split() for line in text.splitlines() if line.startswith(name)]
    return found[number][1:]


def test_medians_and_spreads_stand_in_the_table() -> None:
    cells = row(shown(RESULT), "small")
    assert cells[:2] == ["110.0", "(100.0-120.0)"]


def test_the_trend_is_a_line_of_rounds() -> None:
    assert row(shown(RESULT), "large", -1) == ["300.0", "310.0", "290.0"]


def test_what_was_not_measured_is_a_dash_and_not_zero() -> None:
    rate = Spread(median=0.94, low=0.93, high=0.95, values=(0.94, 0.93, 0.95))
    arm = replace(ARMS[0], figures={**ARMS[0].figures, "hit_rate": rate})
    text = shown(replace(RESULT, arms=(arm, ARMS[1])))
    assert row(text, "small", 2) == ["94.0", "%", "(93.0", "%-95.0", "%)", "-", "-", "-", "-"]
    assert row(text, "large", 2) == ["-"] * 5


def test_the_simulated_and_the_interrupted_are_called_so() -> None:
    text = shown(replace(RESULT, simulated=True, interrupted=True))
    assert "An engine is simulated: these times say nothing about a real machine." in text
    assert "Ended early, after 0 complete turns of arms." in text
    assert "simulated" not in shown(RESULT)


def test_what_is_the_same_for_all_arms_is_said_once() -> None:
    checks = tuple(
        ThresholdCheck(arm=arm, name="gpu", limit=0.7, value=None, held=None, sentence="Unknown.")
        for arm in ("small", "large")
    )
    assert "- small, large: Unknown." in shown(replace(RESULT, thresholds=checks))


def test_what_the_first_failed_request_was_told_is_said() -> None:
    full = failed(ErrorKind.STATUS, status=429, detail="Key `dev` is at its 32 requests at once.")
    text = shown(replace(RESULT, rounds=(round_of("small", 1, [ok(1.0), full, full]),)))
    assert (
        "- small: 2 status 429; the first one said: Key `dev` is at its 32 requests at once."
    ) in text
    assert "Failed requests" not in shown(RESULT)


def test_the_load_is_repeated() -> None:
    load = replace(LOAD, prefix_tokens=1600, cold=True, extra=("top_k",), warm_up=True)
    (line,) = [
        line for line in shown(replace(RESULT, load=load)).splitlines() if "Workload:" in line
    ]
    assert line.rstrip() == (
        "- Workload: shared-prefix; API: chat; Sent: closed loop, 2 at a time; Requests a round: "
        "2; Rounds: 3, after a warm-up; Long prompt: about 1,600 tokens, another one each round; "
        "Output tokens: at most 1; Further fields: top_k; Seed: 0"
    )


def test_an_arms_name_may_look_like_markup() -> None:
    arms = tuple(replace(arm, arm=f"[red]{arm.arm}[/red]") for arm in ARMS)
    assert "[red]small[/red]" in shown(replace(RESULT, arms=arms))


def test_the_plot_has_a_point_a_round_for_each_arm() -> None:
    drawn = plot(RESULT, plotext, 76)
    title, *lines = drawn.splitlines()
    assert "o small, x large" in title
    assert max(map(len, lines)) <= 76 and "\x1b" not in drawn
    marks = {mark: [n for n, line in enumerate(lines) if mark in line] for mark in "ox"}
    assert marks["x"] and max(marks["x"]) < min(marks["o"]), "the slower arm is drawn above"


def test_rounds_without_a_figure_leave_a_gap_in_the_plot() -> None:
    gap = Spread(median=110, low=100, high=120, values=(100, None, 120))
    arm = replace(ARMS[0], figures={"p90_ttft_ms": gap})
    assert "o small" in plot(replace(RESULT, arms=(arm,)), plotext, 60)


def test_a_run_in_which_nothing_succeeded_has_an_empty_plot() -> None:
    arm = replace(ARMS[0], figures={})
    assert "P90 TTFT" in plot(replace(RESULT, arms=(arm,)), plotext, 60)
