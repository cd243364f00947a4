"""The span of a record: its times, its place in the trace, its status."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from opentelemetry.sdk.resources import Resource
from opentelemetry.trace import SpanKind, StatusCode

from gateway import __version__
from gateway.records import Outcome, Record, Trace
from gateway.telemetry.traces.spans import resource, span
from tests.telemetry.conftest import MARKS

CHILD = Trace(trace_id=0xABC, span_id=0x11, parent_id=0x22, flags=3, state="a=1,b=2")
WHO = Resource({"service.name": "x"})
AT = 1_700_000_000_250_000_000

Streamed = Callable[..., Record]


def test_events_stand_where_the_marks_were(streamed: Streamed) -> None:
    made = span(streamed(), CHILD, WHO)
    assert [event.name for event in made.events] == [f"ttft_gateway.{mark}" for mark in MARKS]
    offsets = [event.timestamp - AT for event in made.events]
    assert offsets == [
        0, 10_000_000, 30_000_000, 35_000_000, 70_000_000, 75_000_000, 335_000_000, 385_000_000,
        400_000_000,
    ]  # fmt: skip
    assert (made.start_time, made.end_time) == (AT, AT + 400_000_000)


def test_marks_that_never_came_have_no_event(streamed: Streamed) -> None:
    gone = {"first_token": None, "last_token": None}
    names = [event.name for event in span(streamed(marks=gone), CHILD, WHO).events]
    assert names == [f"ttft_gateway.{mark}" for mark in MARKS if mark not in gone]


def test_its_place_in_the_callers_trace(streamed: Streamed) -> None:
    made = span(streamed(), CHILD, WHO)
    assert made.kind is SpanKind.SERVER
    assert made.context is not None and made.parent is not None
    assert (made.context.trace_id, made.context.span_id) == (0xABC, 0x11)
    assert (made.parent.trace_id, made.parent.span_id) == (0xABC, 0x22)
    assert (made.context.is_remote, made.parent.is_remote) == (False, True)
    assert made.context.trace_flags == 3
    assert made.context.trace_state.to_header() == "a=1,b=2"


def test_a_trace_that_begins_here_has_no_parent(streamed: Streamed) -> None:
    assert span(streamed(), Trace(0xABC, 0x11, flags=1), WHO).parent is None


@pytest.mark.parametrize("outcome", Outcome)
def test_a_status_says_who_failed_and_nothing_the_engine_said(
    streamed: Streamed, outcome: Outcome
) -> None:
    status = span(streamed(outcome=outcome, error="diary", detail="diary"), CHILD, WHO).status
    said = {
        "backend_error": "The model's server failed.",
        "gateway_error": "The gateway failed.",
        "timeout": "A time limit passed.",
    }
    assert status.description == said.get(outcome)
    assert status.status_code is (StatusCode.ERROR if outcome in said else StatusCode.UNSET)


def test_the_service_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OTEL_SERVICE_NAME", raising=False)
    monkeypatch.delenv("OTEL_RESOURCE_ATTRIBUTES", raising=False)
    found = resource().attributes
    assert (found["service.name"], found["service.version"]) == ("ttft-gateway", __version__)
    monkeypatch.setenv("OTEL_SERVICE_NAME", "front")
    monkeypatch.setenv("OTEL_RESOURCE_ATTRIBUTES", "deployment.environment.name=blue")
    found = resource().attributes
    assert found["service.name"] == "front"
    assert found["deployment.environment.name"] == "blue"
    assert found["service.version"] == __version__
