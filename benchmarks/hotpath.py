"""What Python a hot request takes, without sockets: `python -m benchmarks.hotpath --help`.

The client's and the backend's connection are replaced at the transport; everything between them is
the gateway's, with all features on. That leaves the kernel out, and with it what a shared machine
does to a measurement: the calls of a request are the same in every run, and the time of the calmest
round is within a few percent.
"""

from __future__ import annotations

import argparse
import asyncio
import cProfile
import gc
import pstats
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import CodeType
from typing import Any
from unittest.mock import patch

import uvicorn
import uvloop
from rich.console import Console
from uvicorn.server import ServerState

from benchmarks import gateway_config
from benchmarks.client import request
from benchmarks.gates import Gate, failed
from benchmarks.measure import LoadFailed
from benchmarks.report import machine, save
from benchmarks.site import Site
from benchmarks.workloads import BIG, BURST, MODEL, SESSIONS, SMALL, Workload
from gateway.app import Gateway, create_app
from gateway.edge.protocol import GatewayProtocol
from gateway.records import Outcome, Record
from gateway.settings import Settings
from gateway.upstream.connection import Connection
from gateway.upstream.pool import Pool

LIMITS = {SMALL: 390, BURST: 610, BIG: 410}
"""The most calls of functions, Python's own included, that a request may take."""
WRITES = {SMALL: 2, BURST: 4, BIG: 2}
"""And writes to sockets: the request, and one for each read of the answer."""
REQUESTS = 300
"""In a round."""
_WARM_UP = 200
_HEAD = b"HTTP/1.1 200 OK\r\nserver: uvicorn\r\n"
_LAST = b"0\r\n\r\n"
_USAGE = b'"usage":{"prompt_tokens":10,"total_tokens":60,"completion_tokens":50}'
_CHUNK = b'"id":"chatcmpl-1","object":"chat.completion.chunk","created":1760000000,"model":"tiny"'
_TOKEN = (
    b'"choices":[{"index":0,"delta":{"content":" token"},"logprobs":null,"finish_reason":null}]'
)


@dataclass(frozen=True, slots=True)
class Cost:
    """What one request takes.

    Attributes:
        calls: of functions, on average.
        writes: to sockets, on average; each is a system call that wakes the other side.
        cpu_us: microseconds of CPU, in the calmest round.
        profile: where they go.
    """

    calls: float
    writes: float
    cpu_us: float
    profile: pstats.Stats


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure every workload; 0 if no gate is broken, else 1."""
    options = _options(arguments)
    console = Console(highlight=False, width=120)
    costs = {workload.name: measure(workload, options.rounds) for workload in LIMITS}
    gates = [gate for workload in LIMITS for gate in _gates(workload, costs[workload.name])]
    for name, cost in costs.items():
        console.print(f"{name:<12} {cost.cpu_us:.0f} µs of CPU a request")
        if options.profile:
            cost.profile.sort_stats("tottime").print_stats(options.profile)
    for gate in gates:
        console.print(str(gate), markup=False)
    if options.json is not None:
        times = {name: cost.cpu_us for name, cost in costs.items()}
        save(options.json, {"machine": machine(), "rounds": options.rounds, "cpu_us": times}, gates)
    return 1 if failed(gates) else 0


def _gates(workload: Workload, cost: Cost) -> tuple[Gate, Gate]:
    name = workload.name
    return (
        Gate(f"{name}: calls of a request", cost.calls, LIMITS[workload], "calls"),
        Gate(f"{name}: writes of a request", cost.writes, WRITES[workload], "writes"),
    )


def measure(workload: Workload, rounds: int) -> Cost:
    """Serve rounds of requests one by one, then one more round under the profiler.

    Raises:
        LoadFailed: a request was not answered well.
    """
    return uvloop.run(_measure(workload, rounds))


async def _measure(workload: Workload, rounds: int) -> Cost:
    with tempfile.TemporaryDirectory(prefix="ttft-hotpath-") as folder:
        site = Site(Path(folder), port=1, spare_port=2, upstreams=(3, 4))
        with _gateway(site) as gateway, patch.object(Pool, "connect", _connect(workload)):
            client = _Client(gateway, site.key, workload)
            await client.ask(_WARM_UP)
            gc.collect()
            seconds = [await _timed(client) for _ in range(rounds)]
            writes = _Wire.writes
            with cProfile.Profile() as profile:
                await client.ask(REQUESTS)
            writes = _Wire.writes - writes
    calls = sum(entry.callcount for entry in profile.getstats() if not _is_here(entry.code))
    cpu_us = min(seconds) / REQUESTS * 1e6
    return Cost(calls / REQUESTS, writes / REQUESTS, cpu_us, pstats.Stats(profile))


def _is_here(code: CodeType | str) -> bool:
    return isinstance(code, CodeType) and code.co_filename == __file__


async def _timed(client: _Client) -> float:
    started = time.thread_time()
    await client.ask(REQUESTS)
    return time.thread_time() - started


@contextmanager
def _gateway(site: Site) -> Iterator[Gateway]:
    settings = Settings.model_validate(gateway_config.settings(site, {MODEL: MODEL}))
    gateway = Gateway(settings, site.folder / "access.jsonl")
    try:
        yield gateway
    finally:
        gateway.close()


class _Client:
    """One connection to the gateway, which asks for one thing after the other."""

    def __init__(self, gateway: Gateway, key: str, workload: Workload) -> None:
        body = workload.body(MODEL)
        self._requests = [request(key, body, number) for number in range(SESSIONS)]
        self._loop = asyncio.get_running_loop()
        self._over = self._loop.create_future()
        self._recorded = gateway.context.record
        gateway.context.record = self._record
        config = uvicorn.Config(
            create_app(gateway, _unasked), http="httptools", ws="none", log_config=None
        )
        config.load()
        self._protocol = GatewayProtocol(
            gateway.context,
            gateway.paths,
            config=config,
            server_state=ServerState(),
            app_state={},
            _loop=self._loop,
        )
        self._protocol.connection_made(_Wire(_ignored))

    async def ask(self, requests: int) -> None:
        """So many, each once the one before is over."""
        for number in range(requests):
            self._over = self._loop.create_future()
            self._protocol.data_received(self._requests[number % SESSIONS])
            record: Record = await self._over
            if record.outcome is not Outcome.OK:
                raise LoadFailed(f"{record.outcome}: {record.error} {record.detail}")

    def _record(self, record: Record) -> None:
        self._recorded(record)
        # What is left to do within the request's task comes first.
        self._loop.call_soon(self._over.set_result, record)


class _Wire(asyncio.Transport):
    """A connection whose other side is a function.

    Attributes:
        writes: to all of them; asyncio's own `writelines` is one.
    """

    writes = 0

    def __init__(self, receive: Callable[[bytes], object]) -> None:
        super().__init__()
        self._receive = receive

    def write(self, data: bytes | bytearray | memoryview) -> None:
        _Wire.writes += 1
        self._receive(bytes(data))

    def get_extra_info(self, name: str, default: Any = None) -> Any:
        return ("127.0.0.1", 5) if name == "peername" else None

    def is_closing(self) -> bool:
        return False

    def get_write_buffer_size(self) -> int:
        return 0

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        pass

    def pause_reading(self) -> None:
        pass

    def resume_reading(self) -> None:
        pass

    def abort(self) -> None:
        pass


def _connect(workload: Workload) -> Callable[[Pool], Any]:
    """Stands for `Pool.connect`: the backend answers in the next turn of the loop."""
    reads = _reply(workload)

    async def connect(pool: Pool) -> Connection:
        connection = pool._new()
        loop = asyncio.get_running_loop()

        def answer() -> None:
            for read in reads:
                connection.data_received(read)

        connection.connection_made(_Wire(lambda _: loop.call_soon(answer)))
        return connection

    return connect


def _reply(workload: Workload) -> list[bytes]:
    """What the backend sends, read by read."""
    if not workload.events:
        body = b'{%b,"choices":[{"index":0,"message":{"content":"A few words."}}],%b}' % (
            _CHUNK,
            _USAGE,
        )
        head = b"content-type: application/json\r\ncontent-length: %d\r\n\r\n" % len(body)
        return [_HEAD + head + body]
    token = b"data: {%b,%b}\n\n" % (_CHUNK, _TOKEN)
    events = [token] * workload.events
    events += [b'data: {%b,"choices":[],%b}\n\n' % (_CHUNK, _USAGE), b"data: [DONE]\n\n"]
    chunks = [b"%x\r\n%b\r\n" % (len(event), event) for event in events]
    head = b"content-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"
    half = len(chunks) // 2
    return [_HEAD + head + chunks[0], b"".join(chunks[1:half]), b"".join([*chunks[half:], _LAST])]


async def _unasked() -> Settings:
    raise AssertionError("nobody asks for a reload here")


def _ignored(data: bytes) -> None:
    """The client's end."""


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.hotpath", description=__doc__.partition(":")[0]
    )
    parser.add_argument("--rounds", type=int, default=10, help="rounds to take the calmest of")
    parser.add_argument(
        "--profile", type=int, metavar="N", help="show the N functions that take longest"
    )
    parser.add_argument("--json", type=Path, help="keep everything in this file")
    return parser.parse_args(arguments)


if __name__ == "__main__":
    sys.exit(main())
