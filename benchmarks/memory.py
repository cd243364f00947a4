"""Memory at start, and of each idle open stream: `python -m benchmarks.memory --help`."""

from __future__ import annotations

import argparse
import asyncio
import resource
import sys
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from benchmarks import client, process
from benchmarks.contenders import chosen
from benchmarks.fleet import Cores, Running, launch
from benchmarks.gates import Gate, failed
from benchmarks.report import machine, save
from benchmarks.workloads import BURST, Workload

IDLE = Workload("idle", "one event, then an hour of nothing", 0, events=2, interval_ms=3_600_000)
SETTLE = 2.0
_WARM_UP = 200
"""Requests before the baseline: what they leave behind belongs to no stream."""


@dataclass(frozen=True, slots=True)
class Memory:
    """Resident memory of one contender, in KiB.

    Attributes:
        start: once it serves.
        warm: after some requests, the baseline of the streams.
        streaming: with all streams open and idle.
        after: when they have been closed again.
    """

    contender: str
    streams: int
    start: int
    warm: int
    streaming: int
    after: int

    @property
    def per_stream(self) -> float:
        """KiB of each open stream."""
        return (self.streaming - self.warm) / self.streams


def measure(running: Running, streams: int) -> Memory:
    """Hold `streams` open and idle, and look at the process.

    Raises:
        TimeoutError: not every stream began within a minute.
    """
    start = process.resident_kib(running.pid)

    async def hold() -> tuple[int, int]:
        await _warm_up(running)
        warm = process.resident_kib(running.pid)
        body = IDLE.body(running.model)
        opened = []
        for number in range(streams):
            connection = await client.connect(running.port)
            opened.append((connection, connection.send(client.request(running.key, body, number))))
        while not all(reply.tokens for _, reply in opened):
            await asyncio.sleep(0.1)
        await asyncio.sleep(SETTLE)
        streaming = process.resident_kib(running.pid)
        for connection, _ in opened:
            connection.close()
        await asyncio.sleep(SETTLE)
        return warm, streaming

    warm, streaming = client.run(hold, timeout=60 + 2 * SETTLE)
    after = process.resident_kib(running.pid)
    return Memory(running.name, streams, start, warm, streaming, after)


async def _warm_up(running: Running) -> None:
    body = BURST.body(running.model)
    connection = await client.connect(running.port)
    for number in range(_WARM_UP):
        await connection.ask(client.request(running.key, body, number))
    connection.close()


def gates(memory: Memory) -> list[Gate]:
    """What the gateway promises about its memory."""
    return [
        Gate(f"{memory.contender}: memory at start", memory.start / 1024, 120, "MiB"),
        Gate(f"{memory.contender}: each idle open stream", memory.per_stream, 60, "KiB"),
    ]


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure and judge; 1 if a gate is broken or the gateway did not start."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.memory", description=__doc__)
    parser.add_argument("--only", default="gateway,nginx", metavar="NAMES")
    parser.add_argument("--streams", type=int, default=1000, help="default: %(default)s")
    parser.add_argument("--json", type=Path, metavar="FILE")
    options = parser.parse_args(arguments)
    _allow_files(4 * options.streams + 1000)
    found = []
    with launch(chosen(options.only), Cores.pick()) as fleet:
        for name, why in fleet.skipped.items():
            print(f"skipped {name}: {why}")
        for running in fleet.running.values():
            try:
                found.append(measure(running, options.streams))
                print(_line(found[-1]))
            except (TimeoutError, ConnectionError) as failure:
                print(f"{running.name:<16} did not hold {options.streams} streams: {failure!r}")
    ours = [memory for memory in found if memory.contender == "gateway"]
    judged = [gate for memory in ours for gate in gates(memory)]
    print(*judged, sep="\n")
    if options.json is not None:
        save(options.json, {"machine": machine(), "memory": [asdict(m) for m in found]}, judged)
    wanted = "gateway" in options.only.split(",")
    return 1 if failed(judged) or (wanted and not ours) else 0


def _line(memory: Memory) -> str:
    start, *later = (
        f"{kib / 1024:.1f}" for kib in (memory.start, memory.warm, memory.streaming, memory.after)
    )
    return (
        f"{memory.contender:<16} start {start} MiB, {memory.per_stream:.1f} KiB for each of "
        f"{memory.streams} idle streams ({' → '.join(later)} MiB)"
    )


def _allow_files(wanted: int) -> None:
    """Raise the limit of open files, which the started processes inherit."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (min(wanted, hard), hard))


if __name__ == "__main__":
    sys.exit(main())
