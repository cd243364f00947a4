"""Traces through a whole gateway: from a client's, into a backend's, and to a collector."""

from __future__ import annotations

import asyncio
import logging
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import FrameType
from typing import Any

import pytest
import yaml
from opentelemetry.proto.trace.v1.trace_pb2 import Span

from gateway.records import Record
from tests.edge.test_relay import CHAT, answering
from tests.support.collector import FakeCollector, collecting, plain
from tests.support.ports import nobody
from tests.support.running import Way, configuration, running
from tests.support.scripted import Received, reply, scripted
from tests.support.simulated import simulated

TRACE, CALLER = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"
PARENT = {"traceparent": f"00-{TRACE}-{CALLER}-01", "tracestate": "vendor=1"}
UNSAMPLED = {"traceparent": f"00-{TRACE}-{CALLER}-00"}
STREAM = {"model": "m", "stream": True, "messages": [{"role": "user", "content": "Tell me"}]}
PATH = "/v1/chat/completions"

both_ways = pytest.mark.parametrize("way", ["protocol", "asgi"])


@pytest.fixture
def collector(monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeCollector]:
    monkeypatch.setenv("NO_PROXY", "*")
    with collecting() as one:
        yield one


def to(collector: FakeCollector, **more: Any) -> dict[str, Any]:
    return {"traces": {"otlp_endpoint": collector.url, **more}}


def offsets(record: Record) -> dict[str, int]:
    """Nanoseconds from `received` to each mark that was reached, by the event's name."""
    line = record.timeline
    return {
        f"ttft_gateway.{name}": round((at - line.received) * 1e9)
        for name in line.__struct_fields__
        if (at := getattr(line, name)) is not None
    }


def parent_of(request: Received) -> tuple[str, str, str]:
    """Trace id, span id and flags of the `traceparent` that a backend got."""
    version, trace, span, flags = request.headers["traceparent"].split("-")
    assert version == "00"
    return trace, span, flags


def ids(span: Span) -> tuple[str, str, str]:
    return span.trace_id.hex(), span.span_id.hex(), span.parent_span_id.hex()


@both_ways
async def test_the_span_of_a_streamed_request(
    tmp_path: Path, collector: FakeCollector, way: Way
) -> None:
    async with simulated(tmp_path, way=way, **to(collector)) as both:
        response = await both.it.client.post(PATH, json=STREAM, headers=PARENT)
        assert response.status_code == 200
        record = await both.it.record()
    # The gateway has stopped, so what it had not sent yet it has sent now.
    (span,) = collector.spans
    trace, _, parent = ids(span)
    assert (trace, parent, span.trace_state) == (TRACE, CALLER, "vendor=1")
    expected = offsets(record)
    assert len(expected) == 9, "a streamed request passes every mark"
    found = {one.name: one.time_unix_nano - span.start_time_unix_nano for one in span.events}
    assert list(found.items()) == list(expected.items())
    assert list(found.values()) == sorted(found.values())
    assert span.end_time_unix_nano - span.start_time_unix_nano == expected["ttft_gateway.done"]
    assert span.start_time_unix_nano == pytest.approx(record.at * 1e9, abs=1000)
    said = plain(span.attributes)
    line, usage = record.timeline, record.usage
    assert line.body_complete and line.first_token and usage
    assert said["ttft_gateway.time_to_first_token"] == pytest.approx(
        line.first_token - line.body_complete, abs=1e-6
    )
    assert said["ttft_gateway.request_id"] == response.headers["x-request-id"]
    assert said["ttft_gateway.backend"] == response.headers["x-gateway-backend"]
    assert said["gen_ai.usage.output_tokens"] == usage.completion > 0
    assert "Tell me" not in str(span)


@both_ways
async def test_the_backends_parent_is_our_span(
    tmp_path: Path, collector: FakeCollector, way: Way
) -> None:
    async with scripted(answering(reply(b"{}"))) as backend:
        settings = configuration(tmp_path, backend.url, **to(collector))
        async with running(settings, tmp_path, way=way) as it:
            await it.client.post(PATH, json=CHAT, headers=PARENT)
            await it.client.post(PATH, json=CHAT)
    continued, begun = collector.spans
    assert [parent_of(request) for request in backend.requests] == [
        (TRACE, continued.span_id.hex(), "01"),
        (begun.trace_id.hex(), begun.span_id.hex(), "03"),
    ]
    assert [request.headers.get("tracestate") for request in backend.requests] == ["vendor=1", None]
    assert ids(begun)[2] == "" and ids(begun)[0] != TRACE


async def test_every_attempt_hangs_under_one_span(tmp_path: Path, collector: FakeCollector) -> None:
    async def fails(request: Received, writer: asyncio.StreamWriter) -> None:
        writer.write(reply(b'{"error":{"message":"no"}}', status="503 Service Unavailable"))

    async with scripted(fails) as first, scripted(fails) as second:
        settings = configuration(tmp_path, first.url, second.url, **to(collector))
        async with running(settings, tmp_path) as it:
            assert (await it.client.post(PATH, json=CHAT, headers=PARENT)).status_code == 503
    (span,) = collector.spans
    asked = [parent_of(request) for one in (first, second) for request in one.requests]
    assert asked == [(TRACE, span.span_id.hex(), "01")] * 2
    said = plain(span.attributes)
    assert said["error.type"] == "backend_error"
    assert span.status.message == "The model's server failed."
    tried = said["ttft_gateway.tried_backends"]
    assert isinstance(tried, list) and sorted(tried) == ["b0", "b1"]


@pytest.mark.parametrize(
    ("headers", "ratio", "flags"), [(UNSAMPLED, 1, "00"), ({}, 0, "02")], ids=["caller", "ratio"]
)
async def test_what_is_not_sampled_is_handed_on_and_not_sent(
    tmp_path: Path,
    collector: FakeCollector,
    headers: dict[str, str],
    ratio: float,
    flags: str,
) -> None:
    async with scripted(answering(reply(b"{}"))) as backend:
        settings = configuration(tmp_path, backend.url, **to(collector, sample_ratio=ratio))
        async with running(settings, tmp_path) as it:
            await it.client.post(PATH, json=CHAT, headers=headers)
            trace = (await it.record()).trace
    assert trace is not None
    assert parent_of(backend.requests[0]) == (
        f"{trace.trace_id:032x}", f"{trace.span_id:016x}", flags,
    )  # fmt: skip
    assert (f"{trace.trace_id:032x}" == TRACE) is bool(headers)
    assert collector.tries == 0


async def test_refused_and_stored_requests_have_spans_too(
    tmp_path: Path, collector: FakeCollector
) -> None:
    async with running(
        configuration(tmp_path, "http://127.0.0.1:9", **to(collector)), tmp_path
    ) as it:
        await it.client.post(PATH, json=CHAT, headers={"authorization": "Bearer nobody"})
        await it.client.get("/v1/responses/resp_1")
        await it.client.get("/v1/models")
    found = [plain(span.attributes) for span in collector.spans]
    assert [(one["http.request.method"], one["http.response.status_code"]) for one in found] == [
        ("POST", 401),
        ("GET", 404),
    ]
    assert not any("error.type" in one for one in found)


async def test_the_encoding_thread_hands_over_soon_while_traces_are_on(
    tmp_path: Path, collector: FakeCollector
) -> None:
    before = sys.getswitchinterval()
    async with running(configuration(tmp_path, "http://127.0.0.1:9", **to(collector)), tmp_path):
        assert sys.getswitchinterval() == pytest.approx(0.0005)
    assert sys.getswitchinterval() == before


async def test_a_collector_that_is_gone_is_nobodys_trouble(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_TIMEOUT", "0.2")
    monkeypatch.setenv("NO_PROXY", "*")
    caplog.set_level(logging.WARNING)
    async with scripted(answering(reply(b"{}"))) as backend:
        with nobody() as url:
            traces = {"otlp_endpoint": url, "headers": {"authorization": "Bearer hush-hush"}}
            settings = configuration(tmp_path, backend.url, traces=traces)
            async with running(settings, tmp_path) as it:
                for _ in range(3):
                    assert (await it.client.post(PATH, json=CHAT)).status_code == 200
                # Two batches that fail, so that the second has its chance to complain.
                await asyncio.sleep(1.1)
                assert (await it.client.post(PATH, json=CHAT)).status_code == 200
                registry = it.gateway.registry
    said = [record.getMessage() for record in caplog.records]
    assert len(said) == 1 and said[0].startswith(f"spans do not reach {url}: ")
    assert "hush-hush" not in caplog.text
    assert registry.get_sample_value("gateway_spans_dropped_total") == 4


# Off


@pytest.fixture
async def calls(tmp_path: Path) -> set[str]:
    """The files of the Python functions that serve a request while traces are off."""
    found: set[str] = set()

    def note(frame: FrameType, event: str, arg: object) -> None:
        if event == "call":
            found.add(frame.f_code.co_filename)

    async with (
        scripted(answering(reply(b"{}"))) as backend,
        running(configuration(tmp_path, backend.url), tmp_path) as it,
    ):
        await it.client.post(PATH, json=CHAT)
        sys.setprofile(note)
        try:
            await it.client.post(PATH, json=CHAT, headers=PARENT)
            await it.record(2)
        finally:
            sys.setprofile(None)
        assert it.gateway.context.trace is None
        assert sys.getswitchinterval() == pytest.approx(0.005)
        for name, value in PARENT.items():
            assert backend.requests[1].headers[name] == value
    return found


async def test_off_it_calls_nothing(calls: set[str]) -> None:
    assert any(path.endswith("gateway/telemetry/access_log.py") for path in calls)
    assert not [path for path in calls if "opentelemetry" in path or "telemetry/traces" in path]


BUILD = """
import sys, yaml
from pathlib import Path
from gateway.app import Gateway
from gateway.settings import Settings
gateway = Gateway(Settings.model_validate(yaml.safe_load(sys.argv[1])), Path(sys.argv[2]))
gateway.close()
print([name for name in sys.modules if name.startswith(
    ("opentelemetry.sdk", "opentelemetry.exporter", "google.protobuf", "requests"))])
"""


def test_off_it_imports_nothing(tmp_path: Path) -> None:
    """FastAPI brings OpenTelemetry's interface, which does nothing by itself, whenever it is there;
    what takes time and memory is the rest."""
    settings = yaml.safe_dump(configuration(tmp_path, "http://127.0.0.1:9"))
    command = [sys.executable, "-c", BUILD, settings, str(tmp_path / "log")]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


def test_without_its_packages_it_says_how_to_get_them(tmp_path: Path) -> None:
    path = tmp_path / "gateway.yaml"
    traces = {"otlp_endpoint": "http://127.0.0.1:4318"}
    settings = configuration(tmp_path, "http://127.0.0.1:9", traces=traces)
    settings["keys"][0]["key"] = "sk-Yk3vq0Zt8Rw2Lx5Nc7Bd1Mf4Gh6"
    settings["admin"] = {}
    path.write_text(yaml.safe_dump(settings))
    hide = "import sys; sys.modules['opentelemetry.sdk'] = None"
    run = "from gateway.__main__ import main; main()"
    command = [sys.executable, "-c", f"{hide}; {run}", "serve", "-c", str(path)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert "traces.otlp_endpoint: needs packages" in done.stderr
    assert "pip install '.[otel]' in the checkout" in done.stderr
    assert "Traceback" not in done.stderr
