"""From a finished request to an OpenTelemetry span. Needs the extra `otel`."""

from __future__ import annotations

from opentelemetry.sdk.resources import OTELResourceDetector, Resource
from opentelemetry.sdk.trace import Event, ReadableSpan
from opentelemetry.sdk.util.instrumentation import InstrumentationScope
from opentelemetry.trace import SpanContext, SpanKind, Status, StatusCode, TraceFlags, TraceState

from gateway import __version__
from gateway.records import Record, Timeline, Trace
from gateway.telemetry.traces.attributes import FAILURES, attributes, span_name

EVENT = "ttft_gateway."
"""Stands before a mark's name in the name of its event."""

MARKS = Timeline.__struct_fields__

_SCOPE = InstrumentationScope("ttft-gateway", __version__)
_OWN = {"service.name": "ttft-gateway", "service.version": __version__}


def resource() -> Resource:
    """Who speaks: what OTEL_SERVICE_NAME and OTEL_RESOURCE_ATTRIBUTES say, else our own name."""
    told = OTELResourceDetector().detect().attributes
    return Resource.create({name: value for name, value in _OWN.items() if name not in told})


def span(record: Record, trace: Trace, resource: Resource) -> ReadableSpan:
    """The span of a request, with an event at each mark it passed.

    Times are the wall clock's at `received` plus what the monotonic clock measured from there, so
    durations are exact whatever happens to the wall clock.
    """
    received = record.timeline.received
    start = round(record.at * 1e6) * 1000  # a float holds no more of it than microseconds
    times = {
        name: start + round((at - received) * 1e9)
        for name in MARKS
        if (at := getattr(record.timeline, name)) is not None
    }
    state = TraceState.from_header([trace.state])
    failure = FAILURES.get(record.outcome)
    return ReadableSpan(
        span_name(record),
        context=_context(trace, trace.span_id, state),
        parent=_context(trace, trace.parent_id, state) if trace.parent_id else None,
        resource=resource,
        attributes=attributes(record),
        events=[Event(EVENT + name, {}, at) for name, at in times.items()],
        kind=SpanKind.SERVER,
        status=Status(StatusCode.ERROR, failure) if failure else Status(StatusCode.UNSET),
        start_time=start,
        end_time=times.get("done", start),
        instrumentation_scope=_SCOPE,
    )


def _context(trace: Trace, span_id: int, state: TraceState) -> SpanContext:
    remote = span_id == trace.parent_id
    return SpanContext(trace.trace_id, span_id, remote, TraceFlags(trace.flags), state)
