"""A stand-in for a collector of traces: takes OTLP over HTTP on loopback and keeps the spans."""

from __future__ import annotations

import gzip
import threading
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.common.v1.common_pb2 import AnyValue, KeyValue
from opentelemetry.proto.trace.v1.trace_pb2 import Span

Plain = str | bool | int | float | list[str]


@dataclass
class FakeCollector:
    """What arrived.

    Attributes:
        status: what the next exports are answered with.
        location: where they are sent instead; empty for nowhere.
        tries: exports that were answered, whatever with.
        spans: of those that were taken, in order.
        resource: who sent the last ones.
        headers: of the last export, names in lower case.
        paths: asked for.
    """

    port: int = 0
    status: int = 200
    location: str = ""
    tries: int = 0
    spans: list[Span] = field(default_factory=list)
    resource: dict[str, Plain] = field(default_factory=dict)
    headers: dict[str, str] = field(default_factory=dict)
    paths: set[str] = field(default_factory=set)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def wait(self, spans: int, within: float = 5.0) -> list[Span]:
        """The spans, once so many have come."""
        end = time.monotonic() + within
        while len(self.spans) < spans:
            assert time.monotonic() < end, f"{len(self.spans)} of {spans} spans have come"
            time.sleep(0.01)
        return self.spans

    def take(self, path: str, headers: dict[str, str], body: bytes) -> int:
        self.tries += 1
        self.paths.add(path)
        self.headers = headers
        if self.status == 200:
            if headers.get("content-encoding") == "gzip":
                body = gzip.decompress(body)
            for group in ExportTraceServiceRequest.FromString(body).resource_spans:
                self.resource = plain(group.resource.attributes)
                for scope in group.scope_spans:
                    self.spans += scope.spans
        return self.status


def plain(attributes: Iterable[KeyValue]) -> dict[str, Plain]:
    """OTLP's attributes as values of Python."""
    return {one.key: _value(one.value) for one in attributes}


def _value(value: AnyValue) -> Plain:
    kind = value.WhichOneof("value")
    if kind == "array_value":
        return [one.string_value for one in value.array_value.values]
    found: Plain = getattr(value, str(kind))
    return found


@contextmanager
def collecting() -> Iterator[FakeCollector]:
    """A collector on a free port of the loopback address."""
    collector = FakeCollector()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["content-length"]))
            headers = {name.lower(): value for name, value in self.headers.items()}
            self.send_response(collector.take(self.path, headers, body))
            if collector.location:
                self.send_header("location", collector.location)
            self.send_header("content-length", "0")
            self.end_headers()

        def log_message(self, format: str, *args: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    collector.port = server.server_port
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield collector
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
