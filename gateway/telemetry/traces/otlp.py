"""The way to a collector by OTLP over HTTP. Needs the extra `otel`."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence

import requests
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.trace.export import SpanExportResult

from gateway.records import Record
from gateway.telemetry.traces.spans import resource, span

log = logging.getLogger("gateway")

# Of these the message would repeat a header's value, which is a credential.
_HEADERS = "opentelemetry.util.re"
BAD_HEADERS = "OTEL_EXPORTER_OTLP_HEADERS has an entry that is not NAME=VALUE; it is left out"


class OtlpSender:
    """Exports spans to a collector: `queue.Sender`.

    Certificates, compression, the time limit and the service's name are taken from OpenTelemetry's
    own variables of the environment, and so are headers that are not given here.

    Args:
        endpoint: the collector's address, to which `/v1/traces` is added.
        headers: to send with each export. They may hold credentials.
    """

    def __init__(self, endpoint: str, headers: Mapping[str, str]) -> None:
        self._words = _Words()
        self._logger = logging.getLogger("opentelemetry")
        # The library would log each failed try; the queue tells the first one.
        self._propagates, self._logger.propagate = self._logger.propagate, False
        self._logger.addHandler(self._words)
        self._resource = resource()
        self._exporter = OTLPSpanExporter(
            endpoint=f"{endpoint}/v1/traces", headers=dict(headers), session=_session()
        )

    def send(self, records: Sequence[Record]) -> str | None:
        self._words.first = ""
        try:
            spans = [span(one, one.trace, self._resource) for one in records if one.trace]
            result = self._exporter.export(spans)
        except Exception as error:
            # Whatever is wrong with one batch, the next one must still be sent.
            log.exception("spans could not be made")
            return type(error).__name__
        if result is SpanExportResult.SUCCESS:
            return None
        return self._words.first or "no reason was given"

    def close(self) -> None:
        self._exporter.shutdown()  # type: ignore[no-untyped-call]  # it is theirs
        self._logger.removeHandler(self._words)
        self._logger.propagate = self._propagates


def _session() -> requests.Session:
    """One to which a redirect is a failure: the library follows none and takes it for success."""
    session = requests.Session()
    session.hooks["response"].append(_refuse_redirect)
    return session


def _refuse_redirect(response: requests.Response, **_: object) -> None:
    if response.is_redirect:
        response.close()
        raise requests.HTTPError(
            f"{response.status_code} {response.reason}: the address leads elsewhere; name the "
            "collector's own"
        )


class _Words(logging.Handler):
    """Keeps the first thing the library says about an export that goes wrong."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self.first = ""

    def emit(self, record: logging.LogRecord) -> None:
        if record.name == _HEADERS:
            log.warning(BAD_HEADERS)
        else:
            self.first = self.first or record.getMessage()
