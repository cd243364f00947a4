"""The queue to the collector: bounded, quiet, and never in anybody's way."""

from __future__ import annotations

import logging
import threading
import time
from array import array
from collections.abc import Callable, Sequence

import pytest
from prometheus_client import CollectorRegistry

from gateway.records import Record, Trace
from gateway.telemetry.traces.queue import SpanQueue

DROPPED = "gateway_spans_dropped_total"
SAMPLED, UNSAMPLED = Trace(1, 2, flags=1), Trace(1, 2, flags=2)

Streamed = Callable[..., Record]


class FakeSender:
    """Takes batches, fails where it is told to, and waits while `held`."""

    def __init__(self) -> None:
        self.batches: list[list[str]] = []
        self.records: list[Record] = []
        self.reason: str | None = None
        self.free = threading.Event()
        self.free.set()
        self.entered = threading.Event()
        self.closed = False

    @property
    def ids(self) -> list[str]:
        return [record.id for record in self.records]

    def send(self, records: Sequence[Record]) -> str | None:
        self.batches.append([record.id for record in records])
        self.entered.set()
        self.free.wait(10)
        if self.reason is None:
            self.records += records
        return self.reason

    def close(self) -> None:
        self.closed = True
        self.reason = self.reason or ("given up" if not self.free.is_set() else None)
        self.free.set()


@pytest.fixture
def sender() -> FakeSender:
    return FakeSender()


@pytest.fixture
def registry() -> CollectorRegistry:
    return CollectorRegistry()


def until(condition: Callable[[], object]) -> None:
    end = time.monotonic() + 5
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.005)


def warnings(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [record.getMessage() for record in caplog.records if record.name == "gateway"]


def test_sampled_requests_are_sent_in_order_and_in_batches(
    sender: FakeSender, registry: CollectorRegistry, streamed: Streamed
) -> None:
    queue = SpanQueue(sender, "c", registry, interval=10, batch=4)
    for number in range(10):
        queue.add(streamed(id=str(number), trace=SAMPLED))
    queue.close()
    assert sender.batches == [["0", "1", "2", "3"], ["4", "5", "6", "7"], ["8", "9"]]
    assert sender.closed
    assert registry.get_sample_value(DROPPED) == 0


def test_they_are_sent_without_closing(
    sender: FakeSender, registry: CollectorRegistry, streamed: Streamed
) -> None:
    queue = SpanQueue(sender, "c", registry, interval=0.01)
    queue.add(streamed(trace=SAMPLED))
    until(lambda: sender.ids == ["req-1"])
    queue.close()


@pytest.mark.parametrize("trace", [UNSAMPLED, None])
def test_others_are_not(
    sender: FakeSender, registry: CollectorRegistry, streamed: Streamed, trace: Trace | None
) -> None:
    queue = SpanQueue(sender, "c", registry)
    queue.add(streamed(trace=trace))
    queue.close()
    assert sender.batches == []
    assert registry.get_sample_value(DROPPED) == 0


def test_gaps_do_not_wait_with_them(
    sender: FakeSender, registry: CollectorRegistry, streamed: Streamed
) -> None:
    queue = SpanQueue(sender, "c", registry)
    queue.add(streamed(trace=SAMPLED, gaps=array("f", [0.1] * 10_000)))
    queue.close()
    assert len(sender.records[0].gaps) == 0


def test_a_collector_that_hangs_costs_spans_not_memory_or_time(
    sender: FakeSender, registry: CollectorRegistry, streamed: Streamed
) -> None:
    sender.free.clear()
    queue = SpanQueue(sender, "c", registry, limit=20, interval=0.01, batch=1)
    queue.add(streamed(id="first", trace=SAMPLED))
    assert sender.entered.wait(5)
    began = time.thread_time()
    for number in range(500):
        queue.add(streamed(id=str(number), trace=SAMPLED))
    assert time.thread_time() - began < 0.5
    sender.free.set()
    until(lambda: registry.get_sample_value(DROPPED) == 480)
    queue.close()
    assert sender.ids == ["first", *(str(number) for number in range(20))]


def test_a_failing_collector_is_told_once_and_its_return(
    sender: FakeSender,
    registry: CollectorRegistry,
    streamed: Streamed,
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.INFO, "gateway")
    sender.reason = "connection refused"
    queue = SpanQueue(sender, "http://c:4318", registry, interval=0.01, batch=1)
    for number in range(5):
        queue.add(streamed(id=str(number), trace=SAMPLED))
    until(lambda: registry.get_sample_value(DROPPED) == 5)
    assert warnings(caplog) == ["spans do not reach http://c:4318: connection refused"]
    sender.reason = None
    for number in range(5):
        queue.add(streamed(id=str(number), trace=SAMPLED))
    queue.close()
    assert warnings(caplog)[1:] == ["spans reach http://c:4318 again"]
    assert registry.get_sample_value(DROPPED) == 5


def test_closing_takes_its_time_and_no_more(
    sender: FakeSender, registry: CollectorRegistry, streamed: Streamed
) -> None:
    sender.free.clear()
    queue = SpanQueue(sender, "c", registry, interval=0.01, batch=1)
    for number in range(5):
        queue.add(streamed(id=str(number), trace=SAMPLED))
    assert sender.entered.wait(5)
    began = time.monotonic()
    queue.close(timeout=0.1)
    assert 0.1 <= time.monotonic() - began < 4, "less than without a timeout"
    assert sender.batches == [["0"]]
    assert registry.get_sample_value(DROPPED) == 5
    assert not [thread for thread in threading.enumerate() if thread.name == "traces"]
