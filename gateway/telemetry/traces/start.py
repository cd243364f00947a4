"""Traces as the settings ask for them. Without them nothing of OpenTelemetry is imported."""

from __future__ import annotations

import sys
from random import Random

from prometheus_client import CollectorRegistry

from gateway.errors import ConfigError
from gateway.extras import install
from gateway.settings import TraceSettings
from gateway.telemetry.traces.context import TraceContexts
from gateway.telemetry.traces.queue import SpanQueue

# Seconds. While a thread encodes spans, the event loop waits for the interpreter at every turn:
# with Python's own 5 ms for 5 to 7 ms in the median, with this for 0.7 ms.
SWITCH_INTERVAL = 0.0005

MISSING = (
    f"traces.otlp_endpoint: needs packages that are not installed: {install('otel')} installs them"
)


class Traces:
    """Both ends of a request's span. Threads take turns faster from here until `close`.

    Attributes:
        begin: gives a request its place in a trace, and the headers that tell the backend.
        add: takes the finished request.
    """

    def __init__(self, contexts: TraceContexts, spans: SpanQueue) -> None:
        self.begin = contexts.begin
        self.add = spans.add
        self._spans = spans
        self._interval = sys.getswitchinterval()
        sys.setswitchinterval(SWITCH_INTERVAL)

    def close(self) -> None:
        """Send the last spans, for at most some seconds."""
        self._spans.close()
        sys.setswitchinterval(self._interval)


def start(settings: TraceSettings, registry: CollectorRegistry) -> Traces | None:
    """Traces, on their way as soon as a request is over; None where they are off.

    Raises:
        ConfigError: they are on, and the packages of the extra `otel` are missing.
    """
    endpoint = settings.otlp_endpoint
    if endpoint is None:
        return None
    try:
        from gateway.telemetry.traces.otlp import OtlpSender
    except ModuleNotFoundError:
        raise ConfigError([MISSING]) from None
    headers = {name: value.get_secret_value() for name, value in settings.headers.items()}
    contexts = TraceContexts(settings.sample_ratio, Random())
    return Traces(contexts, SpanQueue(OtlpSender(endpoint, headers), endpoint, registry))
