"""One measurement of one proxy: CPU of a request, and the time it adds to the first byte."""

from __future__ import annotations

from dataclasses import dataclass

from benchmarks import client, process, wrk
from benchmarks.fleet import Cores, Running
from benchmarks.workloads import FIRST_BYTE, PACED, SESSIONS, Workload

FIRST_BYTE_RATE = 100.0
_WARM_UP = 0.1
"""Share of the first replies of a fixed-rate run that is left out: connections are made then."""


class LoadFailed(RuntimeError):
    """A proxy answered with an error, cut a reply or dropped a connection."""


@dataclass(frozen=True, slots=True)
class CpuSample:
    """CPU of one contender under one workload in one round.

    Attributes:
        cpu_us: microseconds of CPU for each request, over the process tree.
        rate: requests a second.
    """

    contender: str
    workload: str
    round: int
    cpu_us: float
    requests: int
    rate: float
    connections: int


@dataclass(frozen=True, slots=True)
class FirstByteSample:
    """Seconds to the first byte of each request of one contender in one round."""

    contender: str
    round: int
    seconds: list[float]


def cpu(
    running: Running, workload: Workload, number: int, seconds: float, cores: Cores
) -> CpuSample:
    """Load one proxy for about `seconds` and account for its CPU.

    Raises:
        LoadFailed: a single reply was no success, or a single connection failed.
    """
    if workload is PACED:
        return _paced_cpu(running, number, seconds)
    connections = min(workload.connections, running.max_connections)
    before = process.cpu_by_thread(running.pid)
    outcome = wrk.run(
        port=running.port,
        key=running.key,
        body=workload.body(running.model),
        connections=connections,
        seconds=seconds,
        core=cores.load,
    )
    spent = process.cpu_between(before, process.cpu_by_thread(running.pid))
    if outcome.non_2xx or outcome.socket_errors or not outcome.requests:
        raise LoadFailed(f"{running.name}, {workload.name}: {outcome}")
    return CpuSample(
        contender=running.name,
        workload=workload.name,
        round=number,
        cpu_us=spent / outcome.requests,
        requests=outcome.requests,
        rate=outcome.requests / outcome.seconds,
        connections=connections,
    )


def _paced_cpu(running: Running, number: int, seconds: float) -> CpuSample:
    """wrk would cut the streams at its end and leave their CPU uncounted; these run out."""
    stream_seconds = PACED.events * PACED.interval_ms / 1e3
    repeats = max(1, round(seconds / stream_seconds))
    streams = min(PACED.connections, running.max_connections)
    requests = _requests(running, PACED)

    async def load() -> tuple[float, list[client.Reply]]:
        connections = [await client.connect(running.port) for _ in range(streams)]
        before = process.cpu_by_thread(running.pid)
        replies = await client.paced(connections, requests, repeats, PACED.interval_ms / 1e3)
        spent = process.cpu_between(before, process.cpu_by_thread(running.pid))
        for connection in connections:
            connection.close()
        return spent, replies

    spent, replies = client.run(load)
    _demand_whole(running, PACED, replies)
    return CpuSample(
        contender=running.name,
        workload=PACED.name,
        round=number,
        cpu_us=spent / len(replies),
        requests=len(replies),
        rate=streams / stream_seconds,
        connections=streams,
    )


def first_byte(running: Running, number: int, seconds: float) -> FirstByteSample:
    """Ask at a fixed rate for about `seconds`, noting each request's time to first byte.

    Raises:
        LoadFailed: a reply was no success or was cut.
    """
    requests = _requests(running, FIRST_BYTE)
    count = max(20, round(seconds * FIRST_BYTE_RATE))
    replies = client.run(lambda: client.at_rate(running.port, requests, FIRST_BYTE_RATE, count))
    _demand_whole(running, FIRST_BYTE, replies)
    settled = replies[round(count * _WARM_UP) :]
    return FirstByteSample(running.name, number, [reply.first_byte for reply in settled])


def _requests(running: Running, workload: Workload) -> list[bytes]:
    body = workload.body(running.model)
    return [client.request(running.key, body, session) for session in range(SESSIONS)]


def _demand_whole(running: Running, workload: Workload, replies: list[client.Reply]) -> None:
    for reply in replies:
        if not reply.ok or reply.tokens != workload.events:
            raise LoadFailed(
                f"{running.name}, {workload.name}: {reply.tokens} of {workload.events} events, "
                f"complete: {reply.complete}: {bytes(reply.body[:200])!r}"
            )
