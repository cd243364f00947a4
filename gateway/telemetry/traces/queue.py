"""Finished requests on their way to a collector, taken there by a thread of their own.

OpenTelemetry's own batch processor takes spans, which would have to be built on the event loop,
and drops what it has no room for without a count. This one takes records, at the price of an
append, and has them turned into spans in its thread.
"""

from __future__ import annotations

import logging
import threading
from collections import deque
from collections.abc import Sequence
from typing import Protocol

import msgspec
from prometheus_client import CollectorRegistry, Counter

from gateway.records import Record

log = logging.getLogger("gateway")


class Sender(Protocol):
    """The way to a collector. Only the queue's thread sends."""

    def send(self, records: Sequence[Record]) -> str | None:
        """Export the spans of these requests; returns why that failed, or None."""

    def close(self) -> None:
        """Give up what is being sent, from any thread, and let go of the connection."""


class SpanQueue:
    """Sends the requests whose trace is sampled, within `interval`.

    What there is no room for, and what the collector does not take, is dropped and counted by
    `gateway_spans_dropped_total`. That it is not reached is logged once, and again only after it
    was.

    Args:
        collector: what to call it in the log.
        limit: requests that may wait.
        interval: seconds.
        batch: spans in one request to the collector. Small, since a batch is encoded in one go,
            which the event loop has to share the interpreter with.
    """

    def __init__(
        self,
        sender: Sender,
        collector: str,
        registry: CollectorRegistry,
        *,
        limit: int = 4096,
        interval: float = 1.0,
        batch: int = 64,
    ) -> None:
        self._sender = sender
        self._collector = collector
        self._limit = limit
        self._interval = interval
        self._batch = batch
        self._waiting: deque[Record] = deque()
        # Each is written by one thread only: the loop's, and the queue's own.
        self._lost = 0
        self._lost_and_told = 0
        self._failing = False
        self._dropped = Counter(
            "gateway_spans_dropped_total",
            "Spans that did not reach the collector of traces.",
            registry=registry,
        )
        self._closing = threading.Event()
        self._thread = threading.Thread(target=self._run, name="traces", daemon=True)
        self._thread.start()

    def add(self, record: Record) -> None:
        """Have the request's span sent soon, or dropped."""
        if record.trace is None or not record.trace.sampled:
            return
        if len(self._waiting) < self._limit:
            # A long answer has tens of thousands of gaps, and a span none.
            self._waiting.append(msgspec.structs.replace(record, gaps=()))
        else:
            self._lost += 1

    def close(self, timeout: float = 5.0) -> None:
        """Send what is waiting, for at most `timeout` seconds."""
        self._closing.set()
        self._thread.join(timeout)
        self._sender.close()
        # What was being sent fails now, and the thread ends.
        self._thread.join(1.0)

    def _run(self) -> None:
        while not self._closing.wait(self._interval):
            self._drain()
        self._drain()

    def _drain(self) -> None:
        while self._waiting:
            count = min(len(self._waiting), self._batch)
            reason = self._sender.send([self._waiting.popleft() for _ in range(count)])
            self._note(reason, count)
            if reason is not None and self._closing.is_set():
                # There is no time to try with all the others.
                self._dropped.inc(len(self._waiting))
                self._waiting.clear()
        lost = self._lost - self._lost_and_told
        if lost:
            self._lost_and_told += lost
            self._dropped.inc(lost)

    def _note(self, reason: str | None, count: int) -> None:
        if reason is not None:
            self._dropped.inc(count)
            if not self._failing:
                log.warning("spans do not reach %s: %s", self._collector, reason)
        elif self._failing:
            log.info("spans reach %s again", self._collector)
        self._failing = reason is not None
