"""Spans on the wire, as a collector reads them."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator

import pytest
from opentelemetry.proto.trace.v1.trace_pb2 import Span, Status

from gateway.records import Outcome, Record, Trace
from gateway.telemetry.traces.attributes import attributes
from gateway.telemetry.traces.otlp import BAD_HEADERS, OtlpSender
from tests.support.collector import FakeCollector, collecting, plain
from tests.support.ports import nobody

TRACE = Trace(trace_id=0xABC, span_id=0x11, parent_id=0x22, flags=1, state="a=1")
SECRET = "Bearer-of-a-collector-0123456789"

Streamed = Callable[..., Record]


@pytest.fixture
def collector() -> Iterator[FakeCollector]:
    with collecting() as one:
        yield one


@pytest.fixture(autouse=True)
def _own_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody's settings, no proxy, and short tries."""
    for name in ("OTEL_SERVICE_NAME", "OTEL_RESOURCE_ATTRIBUTES", "OTEL_EXPORTER_OTLP_HEADERS"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("NO_PROXY", "*")
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_TIMEOUT", "0.3")


@pytest.fixture
def sent(collector: FakeCollector) -> Iterator[Callable[..., str | None]]:
    """Sends records to the collector."""
    sender = OtlpSender(collector.url, {"x-tenant": "t"})
    yield lambda *records: sender.send(records)
    sender.close()


def test_a_span_arrives_whole(
    collector: FakeCollector, sent: Callable[..., str | None], streamed: Streamed
) -> None:
    record = streamed(trace=TRACE, tried=("vllm-b",))
    assert sent(record) is None
    (span,) = collector.spans
    assert (span.trace_id.hex(), span.span_id.hex()) == (f"{0xABC:032x}", f"{0x11:016x}")
    assert (span.parent_span_id.hex(), span.trace_state) == (f"{0x22:016x}", "a=1")
    assert (span.name, span.kind) == ("chat llama", Span.SPAN_KIND_SERVER)
    assert span.status.code == Status.STATUS_CODE_UNSET
    expected = attributes(record)
    assert plain(span.attributes) == expected | {"ttft_gateway.tried_backends": ["vllm-b"]}
    assert [event.name for event in span.events][::8] == [
        "ttft_gateway.received",
        "ttft_gateway.done",
    ]
    assert span.end_time_unix_nano - span.start_time_unix_nano == 400_000_000
    assert collector.resource["service.name"] == "ttft-gateway"
    assert collector.headers["x-tenant"] == "t"
    assert collector.paths == {"/v1/traces"}


def test_an_error_arrives_as_one(
    collector: FakeCollector, sent: Callable[..., str | None], streamed: Streamed
) -> None:
    sent(streamed(trace=TRACE, outcome=Outcome.TIMEOUT))
    (span,) = collector.spans
    assert span.status.code == Status.STATUS_CODE_ERROR
    assert span.status.message == "A time limit passed."


def test_what_cannot_be_text_costs_its_attribute_only(
    collector: FakeCollector, sent: Callable[..., str | None], streamed: Streamed
) -> None:
    records = [streamed(trace=TRACE, requested_model=name) for name in ("\ud800", "m")]
    assert sent(*records) is None
    odd, good = (plain(span.attributes) for span in collector.spans)
    assert good.keys() - odd.keys() == {"gen_ai.request.model"}


def test_a_refusal_is_told_with_its_reason_and_only_to_the_queue(
    collector: FakeCollector, streamed: Streamed, caplog: pytest.LogCaptureFixture
) -> None:
    collector.status = 401
    sender = OtlpSender(collector.url, {"authorization": SECRET})
    reason = sender.send([streamed(trace=TRACE)])
    sender.close()
    assert reason is not None and "401" in reason and "Unauthorized" in reason
    assert SECRET not in reason
    assert caplog.records == []


def test_a_redirect_is_no_success(collector: FakeCollector, streamed: Streamed) -> None:
    """The library takes it for one and follows none: the spans would be lost without a word."""
    collector.status, collector.location = 302, "https://elsewhere.invalid/v1/traces"
    sender = OtlpSender(collector.url, {"authorization": SECRET})
    reason = sender.send([streamed(trace=TRACE)])
    sender.close()
    assert reason is not None and "302 Found: the address leads elsewhere" in reason
    assert SECRET not in reason
    assert collector.tries == 1


def test_nobody_there_is_told_with_its_reason(
    streamed: Streamed, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    # Long enough for a second try, before which the library says what the first one met.
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_TIMEOUT", "1.4")
    with nobody() as url:
        sender = OtlpSender(url, {"authorization": SECRET})
        reason = sender.send([streamed(trace=TRACE)])
        sender.close()
    assert reason is not None and "Connection refused" in reason
    assert SECRET not in reason
    assert caplog.records == []


def test_opentelemetrys_variables_say_how(
    collector: FakeCollector, streamed: Streamed, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_COMPRESSION", "gzip")
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_HEADERS", "x-tenant=theirs,x-more=1")
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://elsewhere.invalid")
    monkeypatch.setenv("OTEL_SERVICE_NAME", "front")
    sender = OtlpSender(collector.url, {"x-tenant": "ours"})
    assert sender.send([streamed(trace=TRACE)]) is None
    sender.close()
    assert collector.headers["content-encoding"] == "gzip"
    assert (collector.headers["x-tenant"], collector.headers["x-more"]) == ("ours", "1")
    assert collector.resource["service.name"] == "front"


def test_a_malformed_variable_is_told_without_its_value(
    collector: FakeCollector, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_HEADERS", f"authorization:{SECRET}")
    OtlpSender(collector.url, {}).close()
    assert [record.getMessage() for record in caplog.records] == [BAD_HEADERS]


def test_the_librarys_log_is_given_back(collector: FakeCollector) -> None:
    logger = logging.getLogger("opentelemetry")
    before = (logger.propagate, list(logger.handlers))
    OtlpSender(collector.url, {}).close()
    assert (logger.propagate, list(logger.handlers)) == before
