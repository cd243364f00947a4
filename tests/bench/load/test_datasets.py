"""vLLM's data sets and recorded access logs as workloads."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from gateway.bench.load.datasets import custom, replay, sharegpt
from gateway.errors import GatewayError
from gateway.simulator.tokenizer import encode


def lines(path: Path, *objects: dict[str, Any]) -> Path:
    path.write_text("".join(json.dumps(one) + "\n" for one in objects) + "\n")
    return path


def logged(prompt: int, cached: int = 0, answer: int = 8, **changes: Any) -> dict[str, Any]:
    line = {
        "outcome": "ok",
        "stream": True,
        "session": "s",
        "prompt_tokens": prompt,
        "cached_tokens": cached,
        "completion_tokens": answer,
    }
    return line | changes


# ShareGPT and custom


def share(path: Path, *pairs: tuple[str, str]) -> Path:
    found = [
        {
            "id": str(n),
            "conversations": [{"from": "human", "value": q}, {"from": "gpt", "value": a}],
        }
        for n, (q, a) in enumerate(pairs)
    ]
    path.write_text(json.dumps([*found, {"id": "x", "conversations": []}]))
    return path


def test_sharegpt_asks_the_first_turn_for_an_answer_of_the_recorded_length(tmp_path: Path) -> None:
    file = share(tmp_path / "s.json", ("Why?", "a" * 400), ("How?", "b"))
    talks = sharegpt(file, 2, None).talks(0)
    assert [(talk.questions, talk.output_tokens) for talk in talks] == [
        (("Why?",), 100),
        (("How?",), 1),
    ]
    assert {talk.output_tokens for talk in sharegpt(file, 2, 16).talks(0)} == {16}


def test_rounds_take_the_next_prompts_and_say_when_they_repeat(tmp_path: Path) -> None:
    file = lines(tmp_path / "c.jsonl", *({"prompt": f"p{n}"} for n in range(6)))
    workload = custom(file, 2, None)
    asked = [[talk.questions[0] for talk in workload.talks(n)] for n in range(4)]
    assert asked == [["p0", "p1"], ["p2", "p3"], ["p4", "p5"], ["p0", "p1"]]
    assert "enough for 3 round(s)" in workload.remark


def test_custom_takes_the_lines_own_output_length(tmp_path: Path) -> None:
    file = lines(tmp_path / "c.jsonl", {"prompt": "a", "output_tokens": 9}, {"prompt": "b"})
    assert [talk.output_tokens for talk in custom(file, 2, None).talks(0)] == [9, 1]


def test_fewer_prompts_than_requests_are_said(tmp_path: Path) -> None:
    workload = custom(lines(tmp_path / "c.jsonl", {"prompt": "a"}), 10, None)
    assert len(workload.talks(0)) == 1
    assert workload.remark == "c.jsonl holds 1 requests: a round has no more."


@pytest.mark.parametrize("content", ["", "[]", '{"text": "no prompt"}\n', "nonsense\n"])
def test_another_file_is_refused_in_words(content: str, tmp_path: Path) -> None:
    file = tmp_path / "x.data"
    file.write_text(content)
    for read in (sharegpt, custom):
        with pytest.raises(GatewayError, match=r"x\.data"):
            read(file, 10, None)
    with pytest.raises(GatewayError, match=r"x\.data"):
        replay(file, 10, None, 0)


def test_the_faulty_line_is_named(tmp_path: Path) -> None:
    file = lines(tmp_path / "c.jsonl", {"prompt": "a"}, {"prompt": 7})
    with pytest.raises(GatewayError, match=r"c\.jsonl, line 2: "):
        custom(file, 10, None)


# Replay


def test_a_replay_has_the_recorded_sizes(tmp_path: Path) -> None:
    file = lines(
        tmp_path / "access.jsonl",
        logged(1000, 0, 5, session="a"),
        logged(400, 0, 7, session="b"),
    )
    talks = replay(file, 10, None, 0).talks(0)
    sizes = [len(encode(talk.system)) + len(encode(talk.questions[0])) for talk in talks]
    assert sizes == pytest.approx([1000, 400], abs=2)
    assert [talk.output_tokens for talk in talks] == [5, 7]


def test_a_sessions_prompts_begin_with_its_earlier_ones(tmp_path: Path) -> None:
    file = lines(tmp_path / "access.jsonl", logged(500), logged(900, 500))
    first, second = replay(file, 10, None, 0).talks(0)
    assert second.questions[0].startswith(first.questions[0])
    assert first.session == second.session != ""


def test_what_the_first_request_found_cached_is_shared_by_all_sessions(tmp_path: Path) -> None:
    file = lines(
        tmp_path / "access.jsonl",
        logged(500, 256, session="a"),
        logged(600, 128, session="b"),
    )
    a, b = replay(file, 10, None, 0).talks(1)
    assert len(a.system) == 1024 and len(b.system) == 512
    assert a.system.startswith(b.system)
    assert a.questions[0][:64] != b.questions[0][:64]


def test_rounds_share_what_all_sessions_share_and_nothing_else(tmp_path: Path) -> None:
    workload = replay(lines(tmp_path / "access.jsonl", logged(500, 256)), 10, None, 0)
    (one,), (two,) = workload.talks(1), workload.talks(2)
    assert one.system == two.system
    assert one.questions[0][:64] != two.questions[0][:64] and one.session != two.session


def test_a_line_that_is_being_written_is_left_out(tmp_path: Path) -> None:
    file = lines(tmp_path / "access.jsonl", logged(10), logged(20))
    file.write_text(file.read_text().rstrip()[:-5])
    assert len(replay(file, 10, None, 0).talks(0)) == 1


def test_what_failed_or_was_not_streamed_is_not_replayed(tmp_path: Path) -> None:
    file = lines(
        tmp_path / "access.jsonl",
        {"ts": "2026-01-01", "dropped": 3},
        logged(10, outcome="timeout"),
        logged(20, stream=False),
        logged(30, prompt_tokens=None),
        logged(40),
    )
    assert len(replay(file, 10, None, 0).talks(0)) == 1


@pytest.mark.parametrize(
    "changes",
    [
        {"session": "a\r\nx-gateway-arm: b"},
        {"session": "a\u0000"},
        {"session": "a "},
        {"prompt_tokens": 10**12},
        {"cached_tokens": 10**12},
        {"cached_tokens": -1},
        {"completion_tokens": 10**30},
    ],
)
def test_a_line_that_no_request_can_carry_is_left_out_and_counted(
    changes: dict[str, Any], tmp_path: Path
) -> None:
    bad = logged(10) | changes
    file = lines(tmp_path / "access.jsonl", bad, logged(20, session="good"), bad)
    workload = replay(file, 2, None, 0)
    assert [talk.session for talk in workload.talks(1)] == ["bench-0/1-good"]
    assert workload.remark == (
        "access.jsonl: 2 lines of it were left out, for control characters in the session, or "
        "token counts that no request has. access.jsonl holds 1 requests: a round has no more."
    )
    with pytest.raises(GatewayError, match=r"access\.jsonl: 1 line of it was left out"):
        replay(lines(tmp_path / "access.jsonl", bad), 2, None, 0)


def test_a_log_whose_prompts_would_not_fit_is_refused_before_they_are_written(
    tmp_path: Path,
) -> None:
    file = lines(tmp_path / "access.jsonl", *[logged(10_000_000)] * 51)
    with pytest.raises(GatewayError, match="510,000,000 tokens: at most 500,000,000"):
        replay(file, 51, None, 0)


def test_an_output_length_that_no_request_can_have_is_named(tmp_path: Path) -> None:
    file = lines(tmp_path / "c.jsonl", {"prompt": "a", "output_tokens": 10**30})
    with pytest.raises(GatewayError, match=r"c\.jsonl, line 1: .*output_tokens"):
        custom(file, 10, None)
