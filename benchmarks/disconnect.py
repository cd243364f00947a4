"""Clients that leave or stall: `python -m benchmarks.disconnect --help`.

A client that leaves must free the engine at once, whatever its request was doing; a client that
does not read must hold the engine back, and cost the proxy no memory.
"""

from __future__ import annotations

import argparse
import asyncio
import math
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from benchmarks import client, process, stub
from benchmarks.contenders import chosen
from benchmarks.fleet import Cores, Fleet, Running, launch
from benchmarks.gates import Gate, failed
from benchmarks.report import machine, save
from benchmarks.workloads import BURST, Workload

CLIENTS = 8
GIVE_UP = 8.0
STALL = 2.0
CLOSED_WITHIN = 0.5
GROWTH_MIB = 4.0

STREAMED = Workload("amid a stream", "its reader leaves", CLIENTS, events=400, interval_ms=50)
NO_TOKEN = Workload("before the first token", "", CLIENTS, events=10, first_ms=10_000)
UNSTREAMED = Workload("before an unstreamed reply", "", CLIENTS, first_ms=10_000)
STALLED = Workload("while not reading", "100 MB at once, never read", 1, events=400_000)


@dataclass(frozen=True, slots=True)
class Stalling:
    """A reader that stalled.

    Attributes:
        growth_mib: what the proxy's memory grew by, at most.
        beside: seconds that another client's burst took meanwhile.
        closed_after: seconds from its leaving to the upstream's end.
    """

    growth_mib: float
    beside: float
    closed_after: float


async def leave(running: Running, workload: Workload, fleet: Fleet) -> float:
    """Ask, leave when the stubs are at work; seconds until they no longer are."""
    body = workload.body(running.model)
    connections = [await client.connect(running.port) for _ in range(CLIENTS)]
    replies = [
        connection.send(client.request(running.key, body, number))
        for number, connection in enumerate(connections)
    ]
    while stub.total(fleet.stubs)["active"] < CLIENTS:
        await asyncio.sleep(0.02)
    while workload is STREAMED and not all(reply.tokens > 2 for reply in replies):
        await asyncio.sleep(0.02)
    await asyncio.sleep(0.1)
    for connection in connections:
        connection.close()
    return await _seconds_until_idle(fleet)


async def stall(running: Running, fleet: Fleet) -> Stalling:
    """Ask for 100 MB, read nothing, watch the proxy's memory, serve another client, leave."""
    before = process.resident_kib(running.pid)
    connection = await client.connect(running.port)
    connection.stall()
    connection.send(client.request(running.key, STALLED.body(running.model), 0))
    most = before
    deadline = time.monotonic() + STALL
    while time.monotonic() < deadline:
        most = max(most, process.resident_kib(running.pid))
        await asyncio.sleep(0.05)
    other = await client.connect(running.port)
    started = time.perf_counter()
    await other.ask(client.request(running.key, BURST.body(running.model), 1))
    beside = time.perf_counter() - started
    other.close()
    connection.close()
    return Stalling((most - before) / 1024, beside, await _seconds_until_idle(fleet))


async def _seconds_until_idle(fleet: Fleet) -> float:
    """Infinite if the upstreams go on working for clients that have left."""
    left = time.perf_counter()
    while time.perf_counter() - left < GIVE_UP:
        if stub.total(fleet.stubs)["active"] == 0:
            return time.perf_counter() - left
        await asyncio.sleep(0.01)
    return math.inf


def judge(running: Running, fleet: Fleet) -> list[Gate]:
    """Run every case against one proxy.

    Raises:
        TimeoutError: the proxy never passed a request on.
    """
    closed = {}
    for workload in (STREAMED, NO_TOKEN, UNSTREAMED):
        closed[workload.name] = client.run(partial(leave, running, workload, fleet), timeout=60)
        client.run(partial(_drained, fleet))
    stalling = client.run(partial(stall, running, fleet), timeout=60)
    closed[STALLED.name] = stalling.closed_after
    client.run(partial(_drained, fleet))
    name = running.name
    return [
        *(
            Gate(f"{name}: leaves {moment}", seconds, CLOSED_WITHIN, "s")
            for moment, seconds in closed.items()
        ),
        Gate(f"{name}: memory for a stalled reader", stalling.growth_mib, GROWTH_MIB, "MiB"),
        Gate(f"{name}: a burst beside a stalled reader", stalling.beside, CLOSED_WITHIN, "s"),
    ]


async def _drained(fleet: Fleet) -> None:
    """Wait for what a leaky proxy left running, so that it does not spoil the next case."""
    while stub.total(fleet.stubs)["active"]:
        await asyncio.sleep(0.1)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the cases; 1 if the gateway fails one or did not start."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.disconnect", description=__doc__)
    parser.add_argument("--only", default="gateway,nginx", metavar="NAMES")
    parser.add_argument("--json", type=Path, metavar="FILE")
    options = parser.parse_args(arguments)
    judged: list[Gate] = []
    with launch(chosen(options.only), Cores.pick()) as fleet:
        for name, why in fleet.skipped.items():
            print(f"skipped {name}: {why}")
        for running in fleet.running.values():
            try:
                found = judge(running, fleet)
            except TimeoutError:
                found = [Gate(f"{running.name}: every case in time", math.inf, 60, "s")]
            print(*found, sep="\n")
            judged += found
    if options.json is not None:
        save(options.json, {"machine": machine()}, judged)
    ours = [gate for gate in judged if gate.name.startswith("gateway")]
    return 1 if failed(ours) or "gateway" in fleet.skipped else 0


if __name__ == "__main__":
    sys.exit(main())
