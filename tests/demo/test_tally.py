from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from gateway.demo.tally import Tally, nearest_rank

ARMS = ("chunk-512", "chunk-64")


def line(arm: str, ttft: float | None = None, **fields: Any) -> str:
    """A line of the access log whose body was complete 2 ms after its head."""
    first = None if ttft is None else 2.0 + ttft
    found = {"arm": arm, "outcome": "ok", "body_complete_ms": 2.0, "first_token_ms": first}
    return json.dumps({"id": "x", "api": "chat", **found, **fields}) + "\n"


@pytest.fixture
def log(tmp_path: Path) -> Path:
    (tmp_path / "access.jsonl").touch()
    return tmp_path / "access.jsonl"


def test_ttft_is_from_body_complete_to_first_token_times_speed(log: Path) -> None:
    tally = Tally(log, ARMS)
    log.write_text("".join(line("chunk-64", float(ttft)) for ttft in range(1, 101)))
    tally.follow()
    report = tally.report(2.0)
    assert report["arms"]["chunk-64"]["ttft_ms"] == {"p50": 100.0, "p90": 180.0, "p99": 198.0}
    assert report["arms"]["chunk-512"] == {
        "requests": 0,
        "errors": 0,
        "ttft_ms": {"p50": None, "p90": None, "p99": None},
        "cached_share": 0.0,
    }
    assert (report["verdict"], report["simulated"]) == (None, {"speed": 2.0})


def test_a_line_counts_once_it_is_whole(log: Path) -> None:
    tally = Tally(log, ARMS)
    whole = line("chunk-512", 5.0)
    with log.open("a") as file:
        for piece in (whole + whole[:10], whole[10:], ""):
            file.write(piece)
            file.flush()
            tally.follow()
    assert tally.requests == 2


def test_failures_are_errors_of_the_arm_that_served_or_was_to_serve(log: Path) -> None:
    tally = Tally(log, ARMS)
    log.write_text(
        line("chunk-64", None, outcome="backend_error")
        + line("", None, outcome="backend_error", assigned_arm="chunk-64")
        + line("chunk-64", 9.0)
        + line("", None, outcome="rejected")
    )
    tally.follow()
    arm = tally.report(1.0)["arms"]["chunk-64"]
    assert (arm["requests"], arm["errors"], arm["ttft_ms"]["p99"]) == (3, 2, 9.0)


def test_what_the_demo_broke_off_itself_does_not_count(log: Path) -> None:
    tally = Tally(log, ARMS)
    log.write_text(line("chunk-64", 1.0, outcome="client_gone"))
    tally.follow()
    assert tally.requests == 0


def test_the_cached_share_is_of_tokens(log: Path) -> None:
    tally = Tally(log, ARMS)
    log.write_text(
        line("chunk-64", 1.0, prompt_tokens=100, cached_tokens=0)
        + line("chunk-64", 1.0, prompt_tokens=300, cached_tokens=300)
        + line("chunk-64", 1.0, prompt_tokens=None, cached_tokens=None)
    )
    tally.follow()
    assert tally.report(1.0)["arms"]["chunk-64"]["cached_share"] == 0.75


@pytest.mark.parametrize(("percent", "value"), [(0, 1.0), (50, 2.0), (90, 4.0), (100, 4.0)])
def test_nearest_rank(percent: float, value: float) -> None:
    assert nearest_rank([1.0, 2.0, 3.0, 4.0], percent) == value
