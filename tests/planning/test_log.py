"""The access log as traffic."""

from __future__ import annotations

from pathlib import Path

import pytest

from gateway.errors import GatewayError
from gateway.planning.log import recorded
from gateway.planning.traffic import Request
from tests.planning.made import family, log_line, write_log

(TRAFFIC,) = family(64, users=None, rate=4.0)
ONE = Request(at=0.0, prompt=100, cached=96, output=5, ttft=0.25, tpot=0.01)


def test_requests_come_when_they_were_sent(tmp_path: Path) -> None:
    # In the log they stand in the order of their ends.
    lines = [log_line(one) for one in TRAFFIC.requests][::-1]
    (found,) = recorded(write_log(tmp_path / "log", lines), last=1000).engines
    assert (found.name, found.users) == ("b0", None)
    for one, wanted in zip(found.requests, TRAFFIC.requests, strict=True):
        assert (one.prompt, one.cached, one.output) == (wanted.prompt, wanted.cached, wanted.output)
        assert one.at == pytest.approx(wanted.at, abs=1e-5)
        assert one.ttft == pytest.approx(wanted.ttft)
        assert one.tpot == pytest.approx(wanted.tpot)


def test_each_engine_has_its_own(tmp_path: Path) -> None:
    lines = [log_line(ONE, backend=f"b{n % 2}", arm=f"a{n % 2}", model="m") for n in range(5)]
    file = write_log(tmp_path / "log", lines)
    found = recorded(file, last=1000)
    assert [(one.name, len(one.requests)) for one in found.engines] == [("b0", 3), ("b1", 2)]
    assert recorded(file, arm="a1", last=1000).requests == 2
    assert recorded(file, last=2).requests == 2


def test_what_loads_an_engine_counts_without_a_time(tmp_path: Path) -> None:
    """A whole answer has no first token for its client, and was computed all the same."""
    lines = [log_line(ONE, stream=False), log_line(ONE, first_token_ms=None)]
    (found,) = recorded(write_log(tmp_path / "log", lines), last=10).engines
    assert [(one.ttft, one.tpot) for one in found.requests] == [(None, None)] * 2


def test_how_long_an_answer_took_is_known_of_whole_ones_too(tmp_path: Path) -> None:
    """A stream's end is that of its last token: its client may have read slowly."""
    whole = log_line(ONE, stream=False, first_token_ms=None, last_token_ms=None, done_ms=905.0)
    lines = [whole, log_line(ONE, done_ms=60_000.0), log_line(ONE, last_token_ms=None)]
    (found,) = recorded(write_log(tmp_path / "log", lines), last=10).engines
    took = [one.took for one in found.requests]
    assert took == [pytest.approx(0.9), pytest.approx(0.29), None]


def test_what_never_reached_an_engine_or_has_no_counts_does_not(tmp_path: Path) -> None:
    lines = [
        log_line(ONE),
        log_line(ONE, backend=""),
        log_line(ONE, sent_ms=None),
        log_line(ONE, prompt_tokens=None),
        log_line(ONE, completion_tokens=0),
        {"ts": "2026-01-01T00:00:00Z", "dropped": 7},
    ]
    found = recorded(write_log(tmp_path / "log", lines), last=10)
    assert (found.requests, found.left_out) == (1, 2)


def test_the_line_that_is_being_written_waits(tmp_path: Path) -> None:
    file = write_log(tmp_path / "log", [log_line(ONE)])
    file.write_text(file.read_text() + '{"ts": "2026-')
    assert recorded(file, last=10).requests == 1


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", "holds no such request that reached an engine"),
        ('{"ts": 1}\n', "log, line 1: "),
        ("\x00\n", "log, line 1: "),
        ("[" * 100_000 + "\n", "log, line 1: "),
        (" " * 2**20 + "\n", "log, line 1: longer than any line"),
    ],
)
def test_other_files_are_refused(tmp_path: Path, content: str, message: str) -> None:
    file = tmp_path / "log"
    file.write_text(content)
    with pytest.raises(GatewayError, match=message):
        recorded(file, last=10)


@pytest.mark.parametrize(
    "changes",
    [
        {"prompt_tokens": -1},
        {"completion_tokens": -1},
        {"cached_tokens": -1},
        {"prompt_tokens": 10**9},
        {"completion_tokens": 10**40},
        {"sent_ms": 1e15},
        {"first_token_ms": -1.0},
    ],
)
def test_no_engine_has_such_figures(tmp_path: Path, changes: dict[str, float]) -> None:
    file = write_log(tmp_path / "log", [log_line(ONE), log_line(ONE, **changes)])
    with pytest.raises(GatewayError, match=rf"log, line 2: .*`\$\.{next(iter(changes))}`"):
        recorded(file, last=10)


def test_more_than_can_be_replayed_is_refused_before_it_fills_the_memory(tmp_path: Path) -> None:
    file = write_log(tmp_path / "log", [log_line(ONE, prompt_tokens=10_000_000)] * 11)
    with pytest.raises(GatewayError, match=r"11 requests have .* take fewer with --last"):
        recorded(file, last=11)
    assert recorded(file, last=5).requests == 5


@pytest.mark.parametrize(
    ("changes", "wanted"),
    [
        ({"first_token_ms": 1.0}, (None, None)),
        ({"last_token_ms": 1.0}, (pytest.approx(0.25), None)),
    ],
)
def test_tokens_out_of_order_have_no_time(
    tmp_path: Path, changes: dict[str, float], wanted: tuple[float | None, float | None]
) -> None:
    (found,) = recorded(write_log(tmp_path / "log", [log_line(ONE, **changes)]), last=1).engines
    (request,) = found.requests
    assert (request.ttft, request.tpot) == wanted
