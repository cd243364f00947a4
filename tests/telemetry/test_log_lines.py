"""The access log's short lines; those in JSON are read back in `test_access_log.py`."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from prometheus_client import CollectorRegistry

from gateway.records import Api, NoToken, Outcome, Record
from gateway.telemetry.access_log import AccessLog
from gateway.telemetry.log_lines import brief
from tests.telemetry.conftest import FAILED

Streamed = Callable[..., Record]


@pytest.fixture(autouse=True)
def zone(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Lines have the operator's own time, as what the gateway says beside them."""
    monkeypatch.setenv("TZ", "UTC-2")
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()


def test_a_streamed_request(streamed: Streamed) -> None:
    assert brief(streamed()) == (
        "00:13:20 200  TTFT    0.325 s total    0.400 s  chat dev llama chunk-512 vllm-a req-1"
    )


def test_columns_of_what_never_came_are_as_wide(streamed: Streamed) -> None:
    nothing = brief(streamed(marks=dict.fromkeys(("body_complete", "first_token", "done"))))
    assert nothing == (
        "00:13:20 200  TTFT        -   total        -    chat dev llama chunk-512 vllm-a req-1"
    )


def test_an_answer_that_was_not_streamed_has_no_first_token_to_time(streamed: Streamed) -> None:
    facts = {"api": Api.EMBEDDINGS, "stream": False, "marks": {"first_token": None}}
    assert brief(streamed(**facts)) == (
        "00:13:20 200  unstreamed      total    0.400 s  "
        "embeddings dev llama chunk-512 vllm-a req-1"
    )


@pytest.mark.parametrize("status", [0, 200], ids=["before its answer", "amid it"])
def test_a_client_that_left_gave_no_reason(streamed: Streamed, status: int) -> None:
    assert brief(streamed(status=status, outcome=Outcome.CLIENT_GONE)) == (
        "00:13:20 gone TTFT    0.325 s total    0.400 s  "
        "chat dev llama chunk-512 vllm-a req-1 client_gone"
    )


def test_a_stream_that_broke_off_does_not_look_well_in_front(streamed: Streamed) -> None:
    told = {"error": "The model's server failed.", "detail": "vllm-a: connection reset"}
    assert brief(streamed(outcome=Outcome.BACKEND_ERROR, **told)) == (
        "00:13:20 cut  TTFT    0.325 s total    0.400 s  "
        "chat dev llama chunk-512 vllm-a req-1 backend_error: vllm-a: connection reset"
    )


def test_a_long_reason_is_cut(streamed: Streamed) -> None:
    def reason(length: int) -> str:
        failed = {"status": 502, "outcome": Outcome.BACKEND_ERROR, "detail": "x" * length}
        return brief(streamed(**failed)).partition("backend_error: ")[2]

    assert reason(120) == "x" * 120
    assert reason(121) == "x" * 119 + "…"


def test_a_failure_has_its_reason(streamed: Streamed) -> None:
    failed = {"outcome": Outcome.TIMEOUT, "no_token": NoToken.TIMEOUT, "marks": FAILED}
    told = {"error": "The answer took too long.", "detail": "vllm-a: no token in 600 s"}
    assert brief(streamed(status=504, **failed, **told)).endswith(
        " vllm-a req-1 timeout: vllm-a: no token in 600 s"
    )
    rejected = {
        "outcome": Outcome.REJECTED,
        "key": "",
        "model": "unknown",
        "arm": "",
        "backend": "",
    }
    assert brief(streamed(status=401, **rejected, error="No key.")).endswith(
        "  chat - unknown - - req-1 rejected: No key."
    )


def test_what_a_client_wrote_moves_no_cursor(streamed: Streamed) -> None:
    error = "There is no model `\x1b[2J\n\u202e\ud800` here."
    line = brief(streamed(outcome=Outcome.REJECTED, error=error))
    assert line.endswith("rejected: There is no model ` [2J   ` here.")
    assert line.encode().decode() == line


def test_they_are_written_as_any(tmp_path: Path, streamed: Streamed) -> None:
    path = tmp_path / "log"
    log = AccessLog(path, CollectorRegistry(), brief=True, limit=1, interval=60)
    for _ in range(3):
        log.write(streamed())
    log.close()
    first, second = path.read_text().splitlines()
    assert first == brief(streamed())
    assert second.endswith(" lines missing: 2, which came too fast")
