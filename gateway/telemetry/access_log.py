"""The access log: one line of JSON a request, written by a thread of its own.

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

# Lines encoded at once, and seconds of rest after them: the interpreter is held for 0.2 ms at a
# time, and the loop is sure to get it in between. Without the rest a thread that only writes
# mostly wins it back first: at 5,000 lines a second open streams then waited up to 20 ms.
BATCH = 16
REST = 0.001

MARKS = Timeline.__struct_fields__[1:]


class AccessLog:
    """Takes records on the event loop, in constant time, and writes them within `interval`.

    Where the disk or the reader of a pipe cannot keep up, records over `limit` are dropped;
    `gateway_access_log_dropped_total` counts them and a line `{"ts": …, "dropped": N}` says so
    where they would have stood. A file that was renamed or deleted is opened anew.

    Args:
        path: the file to append to; None for standard output.
        registry: where the counter is published.

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
        self._interval = interval
        self._waiting: deque[Record] = deque()
        # Each is written by one thread only: the loop's, and the log's own.
        self._lost = 0
        self._lost_and_told = 0
        self._dropped = PrometheusCounter(
            "gateway_access_log_dropped_total",
            "Lines missing from the access log, which could not be written fast enough.",
            registry=registry,
        )
        self._encoder = msgspec.json.Encoder()
        self._file = self._open()
        self._closing = threading.Event()
        self._thread = threading.Thread(target=self._run, name="access-log", daemon=True)
        self._thread.start()

    def write(self, record: Record) -> None:
        """Have the record written soon, or dropped."""
        if len(self._waiting) < self._limit:
            self._waiting.append(record)
        else:
            self._lost += 1

    def close(self, timeout: float = 5.0) -> None:
        """Write what is waiting, for at most `timeout` seconds."""
        self._closing.set()
        self._thread.join(timeout)

    def _run(self) -> None:
        while not self._closing.wait(self._interval):
            self._drain()
        self._drain()
        if self._path is not None:
            os.close(self._file)

    def _drain(self) -> None:
        while self._waiting:
            self._follow_rotation()
            batch = [self._waiting.popleft() for _ in range(min(BATCH, len(self._waiting)))]
            self._write([line(record) for record in batch])
            self._closing.wait(REST)
        lost = self._lost - self._lost_and_told
        if lost:
            self._lost_and_told += lost
            self._dropped.inc(lost)
            now = datetime.now(UTC).isoformat(timespec="milliseconds")
            self._write([{"ts": now, "dropped": lost}])

    def _write(self, lines: list[dict[str, object]]) -> None:
        data = memoryview(self._encoder.encode_lines(lines))
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


def line(record: Record) -> dict[str, object]:
    """What the log says of a request; times in milliseconds since its head was received."""
    usage = record.usage
    return {
        "ts": datetime.fromtimestamp(record.at, UTC).isoformat(timespec="milliseconds"),
        "id": record.id,
        "key": record.key,
        "model": record.model,
        "requested_model": record.requested_model,
        "api": record.api,
        "path": record.path,
        "stream": record.stream,
        "session": record.session,
        "session_source": record.session_source,
        "assigned_arm": record.assigned_arm,
        "arm": record.arm,
        "backend": record.backend,
        "tried": record.tried,
        "forced": record.forced,
        "status": record.status,
        "outcome": record.outcome,
        "no_token": record.no_token,
        **marks(record.timeline),
        "prompt_tokens": usage.prompt if usage else None,
        "cached_tokens": usage.cached if usage else None,
        "completion_tokens": usage.completion if usage else None,
        "usage_exact": usage.exact if usage else None,
        "bytes_in": record.bytes_in,
        "bytes_out": record.bytes_out,
        "error": record.error,
        "detail": record.detail,
    }


def marks(timeline: Timeline) -> dict[str, float | None]:
    """Each mark as `NAME_ms` since `received`; None where it never came so far."""
    start = timeline.received
    passed = ((name, getattr(timeline, name)) for name in MARKS)
    return {
        f"{name}_ms": None if mark is None else round((mark - start) * 1000, 3)
        for name, mark in passed
    }
