"""The requests sent, and what is made of wrk's output."""

from __future__ import annotations

import json

import pytest

from benchmarks import wrk
from benchmarks.workloads import BIG, BURST, PACED


def test_the_big_body_is_big_the_same_and_hides_the_model_among_others() -> None:
    body = BIG.body("renamed")
    assert 100_000 < len(body) < 115_000
    assert body == BIG.body("renamed")
    assert json.loads(body)["model"] == "renamed"
    assert body.count(b'"model"') > 10


def test_a_body_asks_the_stub_for_its_events() -> None:
    question = json.loads(PACED.body("tiny"))["messages"][-1]["content"]
    assert "stub(events=50 interval=20 first=0)" in question
    assert "stream_options" not in json.loads(BURST.body("tiny"))


def test_wrk_counts_are_read_and_their_absence_is_an_error() -> None:
    line = (
        'RESULT {"requests": 12, "seconds": 2.0, "non_2xx": 1, "socket_errors": 3, "p50_us": 9.5}'
    )
    found = wrk.parse(f"Running 2s test\n{line}\n")
    assert found == wrk.Outcome(12, 2.0, non_2xx=1, socket_errors=3, p50_us=9.5)
    with pytest.raises(ValueError, match="unable to connect"):
        wrk.parse("unable to connect to 127.0.0.1:1")
