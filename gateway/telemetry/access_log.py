"""The access log: one line of JSON a request, written by a thread of its own.

Lines are encoded where the request ends, in about 5 µs, once its answer has gone out. A thread
that encoded them would fight the event loop for the interpreter: that cost 140 µs a request at
5,000 requests a second. The thread only writes, which needs no interpreter.

A line names who asked, where the request went and when each mark was passed. It never holds
content, a key, or the client's own session identifier.
"""

from __future__ import annotations

import os
import threading
from collections import deque
from datetime import UTC, datetime
from pathlib import Path

import msgspec
from prometheus_client import CollectorRegistry
from prometheus_client import Counter as PrometheusCounter

from gateway.records import Record, Timeline


class AccessLog:
    """Takes records on the event loop and writes their lines within `interval`.

    Where the disk or the reader of a pipe cannot keep up, records over `limit` are dropped;
    `gateway_access_log_dropped_total` counts them and a line `{"ts": …, "dropped": N}` says so
    where they would have stood. A file that was renamed or deleted is opened anew.

    Args:
        path: the file to append to; None for standard output.
        registry: where the counter is published.

    Attributes:
        interval: seconds; may change at any time.

    Raises:
        OSError: the file cannot be opened.
    """

    def __init__(
        self,
        path: Path | None,
        registry: CollectorRegistry,
        *,
        limit: int = 50_000,
        interval: float = 0.2,
    ) -> None:
        self._path = path
        self._limit = limit
        self.interval = interval
        self._waiting: deque[bytes] = deque()
        # Each is written by one thread only: the loop's, and the log's own.
        self._lost = 0
        self._lost_and_told = 0
        self._dropped = PrometheusCounter(
            "gateway_access_log_dropped_total",
            "Lines missing from the access log, which could not be written fast enough.",
            registry=registry,
        )
        self._encode = msgspec.json.Encoder().encode
        self._file = self._open()
        self._closing = threading.Event()
        self._thread = threading.Thread(target=self._run, name="access-log", daemon=True)
        self._thread.start()

    def write(self, record: Record) -> None:
        """Have the record written soon, or dropped."""
        if len(self._waiting) < self._limit:
            self._waiting.append(self._encode(line(record)))
        else:
            self._lost += 1

    def close(self, timeout: float = 5.0) -> None:
        """Write what is waiting, for at most `timeout` seconds."""
        self._closing.set()
        self._thread.join(timeout)

    def _run(self) -> None:
        while not self._closing.wait(self.interval):
            self._drain()
        self._drain()
        if self._path is not None:
            os.close(self._file)

    def _drain(self) -> None:
        if self._waiting:
            self._follow_rotation()
            self._write([self._waiting.popleft() for _ in range(len(self._waiting))])
        lost = self._lost - self._lost_and_told
        if lost:
            self._lost_and_told += lost
            self._dropped.inc(lost)
            self._write([self._encode({"ts": datetime.now(UTC), "dropped": lost})])

    def _write(self, lines: list[bytes]) -> None:
        data = memoryview(b"\n".join([*lines, b""]))
        try:
            while data:
                data = data[os.write(self._file, data) :]
        except OSError:
            self._dropped.inc(len(lines))

    def _open(self) -> int:
        if self._path is None:
            return 1
        return os.open(self._path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o640)

    def _follow_rotation(self) -> None:
        if self._path is None:
            return
        try:
            if self._path.exists() and os.path.samestat(self._path.stat(), os.fstat(self._file)):
                return
            fresh = self._open()
        except OSError:
            # Better the old file than none.
            return
        os.close(self._file)
        self._file = fresh


class Line(msgspec.Struct, gc=False):
    """What the log says of a request, in this order; `*_ms` count from `received`.

    Marks that never came so far, and counts that the backend never told, are null.
    """

    ts: datetime
    id: str
    key: str
    model: str
    requested_model: str
    api: str
    path: str
    stream: bool
    session: str
    session_source: str
    assigned_arm: str
    arm: str
    backend: str
    backend_api: str
    tried: tuple[str, ...]
    forced: bool
    status: int
    outcome: str
    no_token: str | None
    body_complete_ms: float | None
    admitted_ms: float | None
    sent_ms: float | None
    upstream_headers_ms: float | None
    first_byte_ms: float | None
    first_token_ms: float | None
    last_token_ms: float | None
    done_ms: float | None
    prompt_tokens: int | None
    cached_tokens: int | None
    completion_tokens: int | None
    usage_exact: bool | None
    bytes_in: int
    bytes_out: int
    error: str
    detail: str


def line(record: Record) -> Line:
    """The line of a finished request."""
    usage = record.usage
    body_complete, admitted, sent, headers, byte, first, last, done = passed(record.timeline)
    return Line(
        ts=datetime.fromtimestamp(record.at, UTC),
        id=record.id,
        key=record.key,
        model=record.model,
        requested_model=record.requested_model,
        api=record.api,
        path=record.path,
        stream=record.stream,
        session=record.session,
        session_source=record.session_source,
        assigned_arm=record.assigned_arm,
        arm=record.arm,
        backend=record.backend,
        backend_api=record.backend_api,
        tried=record.tried,
        forced=record.forced,
        status=record.status,
        outcome=record.outcome,
        no_token=record.no_token,
        body_complete_ms=body_complete,
        admitted_ms=admitted,
        sent_ms=sent,
        upstream_headers_ms=headers,
        first_byte_ms=byte,
        first_token_ms=first,
        last_token_ms=last,
        done_ms=done,
        prompt_tokens=usage.prompt if usage else None,
        cached_tokens=usage.cached if usage else None,
        completion_tokens=usage.completion if usage else None,
        usage_exact=usage.exact if usage else None,
        bytes_in=record.bytes_in,
        bytes_out=record.bytes_out,
        error=record.error,
        detail=record.detail,
    )


def passed(timeline: Timeline) -> list[float | None]:
    """Each mark after `received`, in order, in milliseconds since it; None where it never came."""
    start = timeline.received
    times = (
        timeline.body_complete,
        timeline.admitted,
        timeline.sent,
        timeline.upstream_headers,
        timeline.first_byte,
        timeline.first_token,
        timeline.last_token,
        timeline.done,
    )
    return [None if time is None else round((time - start) * 1000, 3) for time in times]


def marks(timeline: Timeline) -> dict[str, float | None]:
    """Each mark as `NAME_ms` since `received`."""
    names = (f"{name}_ms" for name in timeline.__struct_fields__[1:])
    return dict(zip(names, passed(timeline), strict=True))
