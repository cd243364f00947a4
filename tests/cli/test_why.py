from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from gateway.admin.views import RequestView
from gateway.cli.why import explain
from gateway.records import Api, NoToken, Outcome, Timeline, Usage
from tests.admin.fake import FakeControl, record

Run = Callable[..., Any]


def explained(**changes: Any) -> dict[str, str]:
    return dict(explain(RequestView.of(record(**changes))))


def test_a_request_that_went_well(run: Run, url: str, control: FakeControl) -> None:
    control.records["req_1"] = record()
    result = run("why", "req_1")
    assert result.status == 0
    assert result.out.splitlines() == [
        "Request: req_1, 2023-11-14 22:13:20 UTC, key dev: /v1/chat/completions, streamed, "
        "model llama (asked for as gpt-4o-local).",
        "Outcome: ok, HTTP 200.",
        "Session: by x-session-id (hash 9f3c2a).",
        "Arm:     the session's hash falls to chunk-512 by the weights of revision 3: "
        "chunk-512 90 (90 %), chunk-64 10 (10 %).",
        "Backend: vllm-a of arm chunk-512, the first one tried.",
        "TTFT:    325 ms = 20 ms queue + 5 ms gateway + 300 ms engine.",
        "Total:   400 ms from the request's head to its end.",
        "Tokens:  1600 of prompt, 64 % of them cached; 40 generated.",
    ]


def test_a_failover_tells_who_failed_and_whom_evidence_charges() -> None:
    told = explained(
        arm="chunk-64",
        backend="vllm-b",
        tried=("vllm-a",),
        detail="vllm-a: connection refused",
    )
    assert "It went to arm chunk-64 instead" in told["Arm"]
    assert "evidence still charges" in told["Arm"]
    assert told["Backend"] == "vllm-b of arm chunk-64, after vllm-a had failed."
    assert "vllm-a: connection refused" in told["Outcome"]
    assert "gateway, failed attempts included" in told["TTFT"]


def test_a_stored_response_lacks_no_api() -> None:
    told = explained(api=Api.OTHER, backend_api="responses", stream=False)
    assert told["Backend"] == "vllm-a of arm chunk-512, the first one tried."


def test_the_only_or_last_backend_that_failed_is_not_said_to_have_failed_before_itself() -> None:
    alone = explained(backend="vllm-a", tried=("vllm-a",), outcome="backend_error")
    last = explained(backend="vllm-a", tried=("vllm-b", "vllm-a"), outcome="backend_error")
    again = explained(backend="vllm-a", tried=("vllm-a",))
    assert alone["Backend"] == "vllm-a of arm chunk-512, which failed."
    assert last["Backend"] == "vllm-a of arm chunk-512, which failed as vllm-b had before."
    assert again["Backend"] == "vllm-a of arm chunk-512, after vllm-a had failed."


def test_an_arm_chosen_by_hand() -> None:
    told = explained(forced=True)
    assert told["Arm"] == "chunk-512, which the client chose by hand: it is no evidence."


def test_no_session_signal() -> None:
    told = explained(session_source="fingerprint")
    assert "fingerprint of the system text and the first user message" in told["Session"]


@pytest.mark.parametrize("reason", list(NoToken))
def test_no_first_token(reason: NoToken) -> None:
    told = explained(
        timeline=Timeline(50.0, 50.01, 50.03, 50.035, done=650.0),
        outcome=Outcome.TIMEOUT,
        no_token=reason,
        usage=None,
    )
    assert told["TTFT"].startswith(("no token came", "none, since"))
    assert told["Total"].startswith("600 s")
    assert "Tokens" not in told


def test_not_streamed() -> None:
    told = explained(stream=False)
    assert "TTFT" not in told and "not streamed" in told["Request"]


def test_a_cut_stream() -> None:
    told = explained(usage=Usage(completion=17, exact=False), outcome=Outcome.CLIENT_GONE)
    assert told["Tokens"] == "17 relayed before the stream was cut."
    assert told["Outcome"].startswith("client gone")


def test_turned_away_before_it_was_known() -> None:
    told = explained(
        key="", model="unknown", requested_model="gpt-5", assigned_arm="", arm="", backend="",
        status=404, outcome=Outcome.REJECTED, error="There is no model `gpt-5`.",
        timeline=Timeline(50.0), no_token=NoToken.REJECTED, usage=None,
    )  # fmt: skip
    assert "no known key" in told["Request"] and "asked for as gpt-5" in told["Request"]
    assert told["Outcome"] == "rejected, HTTP 404. There is no model `gpt-5`."
    assert told["Backend"] == "none was tried."
    assert "Arm" not in told and "Session" not in told


def test_in_json(run: Run, url: str, control: FakeControl) -> None:
    control.records["req_1"] = record()
    assert json.loads(run("why", "req_1", "--json").out)["ttft"]["engine_ms"] == 300


def test_an_unknown_request(run: Run, url: str) -> None:
    result = run("why", "req_nope")
    assert (result.status, result.out) == (1, "")
    assert "access log" in result.err
    assert "not to a model: a list of models, a wrong path or method" in result.err


def test_an_api_that_the_backend_lacks() -> None:
    told = explained(api=Api.MESSAGES, backend_api="chat")
    assert "asked in the chat API since it has no messages" in told["Backend"]
