"""The access log: one line a request, written by a thread of its own.

Lines are encoded where the request ends, in about 5 µs, once its answer has gone out. A thread
that encoded them would fight the event loop for the interpreter: that cost 140 µs a request at
5,000 requests a second. The thread only writes, which needs no interpreter.
"""

from __future__ import annotations

import os
import threading
from collections import deque
from pathlib import Path

from prometheus_client import CollectorRegistry
from prometheus_client import Counter as PrometheusCounter

from gateway.records import Record
from gateway.telemetry.log_lines import BRIEF, JSON


class AccessLog:
    """Takes records on the event loop and writes their lines within `interval`.

    Where the disk or the reader of a pipe cannot keep up, records over `limit` are dropped;
    `gateway_access_log_dropped_total` counts them and a line says so where they would have stood.
    A file that was renamed or deleted is opened anew.

    Args:
        path: the file to append to; None for standard output.
        registry: where the counter is published.
        brief: writes lines for people, instead of JSON.

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
        brief: bool = False,
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
        self._line, self._encode, self._told = BRIEF if brief else JSON
        self._file = self._open()
        self._closing = threading.Event()
        self._thread = threading.Thread(target=self._run, name="access-log", daemon=True)
        self._thread.start()

    def write(self, record: Record) -> None:
        """Have the record written soon, or dropped."""
        if len(self._waiting) < self._limit:
            self._waiting.append(self._encode(self._line(record)))
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
            self._write([self._encode(self._told(lost))])

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
