"""What a scrape of `/metrics` does to open streams: `python -m benchmarks.scrape --help`.

The gateway serves many models, so that its metrics hold many series, and streams are open whose
events come 20 ms apart. Phases with and without scraping alternate; compared is the 99th
percentile of the gap between events, as the streams' clients see it. Scrapes come once a second
(Prometheus: every 15 s), since a rarer one could not move a 99th percentile at all.
"""

from __future__ import annotations

import argparse
import http.client
import itertools
import multiprocessing
import os
import statistics
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import asdict, dataclass
from multiprocessing.synchronize import Event
from pathlib import Path
from typing import Any

from benchmarks import client, gateway_config
from benchmarks.contenders import WIDE_GATEWAY
from benchmarks.fleet import Cores, Running, launch
from benchmarks.gates import Gate, failed
from benchmarks.measure import LoadFailed
from benchmarks.report import machine, save
from benchmarks.workloads import (
    FIRST_BYTE,
    PACED,
    PATH,
    SESSIONS,
    SMALL,
    headers,
    session_header,
)

EVERY = 1.0
ACCEPT = {
    "accept": "application/openmetrics-text;version=1.0.0,text/plain;version=0.0.4;q=0.5",
    "accept-encoding": "gzip",
}
"""What Prometheus sends."""


@dataclass(frozen=True, slots=True)
class Phase:
    """Gaps between events in one phase, in milliseconds."""

    round: int
    scraped: bool
    p50_ms: float
    p99_ms: float
    max_ms: float


@dataclass(frozen=True, slots=True)
class Scrapes:
    """The scrapes of one phase: how many, their median time in ms, and the size of the last."""

    count: int
    median_ms: float
    size: int


def measure(running: Running, number: int, seconds: float, scraped: bool) -> Phase:
    """Run paced streams for about `seconds` and look at their gaps.

    Raises:
        LoadFailed: a stream was cut.
    """
    body = PACED.body(running.model)
    requests = [client.request(running.key, body, session) for session in range(SESSIONS)]

    async def load() -> list[client.Reply]:
        connections = [await client.connect(running.port) for _ in range(PACED.connections)]
        interval = PACED.interval_ms / 1e3
        repeats = max(1, round(seconds / (PACED.events * interval)))
        replies = await client.paced(connections, requests, repeats, interval)
        for connection in connections:
            connection.close()
        return replies

    replies = client.run(load)
    if not all(reply.ok and reply.tokens == PACED.events for reply in replies):
        raise LoadFailed(f"{running.name}: a stream was cut")
    gaps = sorted(gap * 1e3 for reply in replies for gap in reply.gaps)
    return Phase(number, scraped, statistics.median(gaps), gaps[int(len(gaps) * 0.99)], gaps[-1])


def fill(running: Running) -> None:
    """Ask every model in every conversation, streamed and not, so that all series exist.

    Raises:
        LoadFailed: a reply was no success.
    """
    connection = http.client.HTTPConnection("127.0.0.1", running.port, timeout=30)
    for model in gateway_config.wide_models():
        for workload, number in itertools.product((FIRST_BYTE, SMALL), range(SESSIONS)):
            fields = headers(running.key) | dict([session_header(number)])
            connection.request("POST", PATH, workload.body(model), fields)
            response = connection.getresponse()
            body = response.read()
            if response.status != 200:
                raise LoadFailed(f"{model}: status {response.status}: {body[:200]!r}")
    connection.close()


@contextmanager
def scraping(running: Running, into: list[Scrapes]) -> Iterator[None]:
    """Scrape once a second from another process, as Prometheus would, until the block ends."""
    context = multiprocessing.get_context("spawn")
    results: Any = context.Queue()
    leave = context.Event()
    scraper = context.Process(
        target=_scrape_until, args=(running.port, leave, results), daemon=True
    )
    scraper.start()
    results.get(timeout=30)  # it has begun
    try:
        yield
    finally:
        leave.set()
        into.append(results.get(timeout=60))
        scraper.join(10)


def _scrape_until(port: int, leave: Event, results: Any) -> None:
    os.nice(19)  # the measuring client runs on the same core and must not wait for this
    times: list[float] = []
    size = 0
    results.put(None)
    while not leave.wait(EVERY):
        started = time.perf_counter()
        size = len(_scrape(port))
        times.append((time.perf_counter() - started) * 1e3)
    results.put(Scrapes(len(times), statistics.median(times or [0.0]), size))


def _scrape(port: int, accept: Mapping[str, str] = ACCEPT) -> bytes:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
    try:
        connection.request("GET", "/metrics", headers=dict(accept))
        response = connection.getresponse()
        body = response.read()
    finally:
        connection.close()
    if response.status != 200:
        raise LoadFailed(f"/metrics answered {response.status}")
    return body


def series(port: int) -> int:
    """How many series `/metrics` holds."""
    lines = _scrape(port, accept={}).splitlines()
    return sum(1 for line in lines if line and not line.startswith(b"#"))


def gate(phases: Sequence[Phase]) -> Gate:
    """What the gateway promises: scraping adds little to the gaps of open streams."""
    usual = statistics.median(phase.p99_ms for phase in phases if not phase.scraped)
    scraped = statistics.median(phase.p99_ms for phase in phases if phase.scraped)
    return Gate("gateway: added by scrapes to the P99 gap", scraped - usual, 1.0, "ms")


def main(arguments: Sequence[str] | None = None) -> int:
    """Alternate phases with and without scraping; 1 if the gate is broken."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.scrape", description=__doc__)
    parser.add_argument("--rounds", type=int, default=3, help="default: %(default)s")
    parser.add_argument(
        "--duration", type=float, default=6.0, help="seconds of a phase; default: %(default)s"
    )
    parser.add_argument("--json", type=Path, metavar="FILE")
    options = parser.parse_args(arguments)
    phases: list[Phase] = []
    scrapes: list[Scrapes] = []
    cores = Cores.pick()
    os.sched_setaffinity(0, {cores.load})
    with launch([WIDE_GATEWAY], cores) as fleet:
        if WIDE_GATEWAY.name in fleet.skipped:
            print(f"skipped: {fleet.skipped[WIDE_GATEWAY.name]}")
            return 1
        running = fleet.running[WIDE_GATEWAY.name]
        fill(running)
        print(f"/metrics holds {series(running.port)} series")
        for number in range(options.rounds):
            for scraped in (False, True) if number % 2 == 0 else (True, False):
                watch = scraping(running, scrapes) if scraped else nullcontext()
                with watch:
                    phases.append(measure(running, number, options.duration, scraped))
                print(_line(phases[-1]), scrapes[-1] if scraped else "")
    judged = [gate(phases)]
    print(*judged, sep="\n")
    if options.json is not None:
        content = {"phases": [asdict(p) for p in phases], "scrapes": [asdict(s) for s in scrapes]}
        save(options.json, {"machine": machine(), **content}, judged)
    return 1 if failed(judged) else 0


def _line(phase: Phase) -> str:
    scraped = "scraped  " if phase.scraped else "unscraped"
    return (
        f"{scraped} gap P50 {phase.p50_ms:6.2f}, P99 {phase.p99_ms:6.2f}, "
        f"longest {phase.max_ms:6.2f} ms"
    )


if __name__ == "__main__":
    sys.exit(main())
