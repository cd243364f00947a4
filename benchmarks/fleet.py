"""What runs during a benchmark: two stubs and the proxies, started and ended together."""

from __future__ import annotations

import http.client
import os
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from benchmarks import process, stub
from benchmarks.contenders import Contender
from benchmarks.site import Site
from benchmarks.workloads import PATH, Workload, headers, session_header

DIRECT = "direct"
"""The name under which the stub itself is measured, without a proxy."""


@dataclass(frozen=True, slots=True)
class Running:
    """A proxy that serves: where it listens, its process, and how to ask it."""

    name: str
    port: int
    pid: int
    key: str
    model: str
    max_connections: int


@dataclass(frozen=True, slots=True)
class Cores:
    """Where things run: the proxies on one core, load and stubs on the other."""

    proxy: int
    load: int

    @classmethod
    def pick(cls) -> Cores:
        """The last and the first core we may use; one and the same where there is only one."""
        allowed = sorted(os.sched_getaffinity(0))
        return cls(proxy=allowed[-1], load=allowed[0])


@dataclass(slots=True)
class Fleet:
    """What is running, and which contenders are not, and why."""

    running: dict[str, Running]
    skipped: dict[str, str]
    stubs: tuple[int, int]
    direct: Running


@contextmanager
def launch(contenders: Sequence[Contender], cores: Cores) -> Iterator[Fleet]:
    """Start two stubs and every contender that can run here; end them all on leaving."""
    with ExitStack() as stack:
        temporary = tempfile.TemporaryDirectory(prefix="ttft-bench-", ignore_cleanup_errors=True)
        folder = Path(stack.enter_context(temporary))
        binary = stub.build(folder)
        first, direct_pid = _start_stub(stack, binary, folder / "stub-1.log", cores.load)
        second, _ = _start_stub(stack, binary, folder / "stub-2.log", cores.load)
        fleet = Fleet(
            running={},
            skipped={},
            stubs=(first, second),
            direct=Running(DIRECT, first, direct_pid, "none", "tiny", 10_000),
        )
        for contender in contenders:
            reason = contender.obstacle() or _start(stack, contender, fleet, folder, cores.proxy)
            if reason is not None:
                fleet.skipped[contender.name] = reason
        yield fleet


def check_reply(running: Running, workload: Workload) -> None:
    """Ask once and look at the reply closely.

    Raises:
        process.ServerFailed: it is not what the stub sent, under the name the client used.
    """
    connection = http.client.HTTPConnection("127.0.0.1", running.port, timeout=60)
    try:
        fields = headers(running.key) | dict([session_header(0)])
        connection.request("POST", PATH, workload.body(running.model), fields)
        response = connection.getresponse()
        text = response.read().decode()
    finally:
        connection.close()
    wanted = workload.events or 1
    found = text.count('" token"' if workload.events else "A stub's answer")
    named = f'"model":"{running.model}"' in text.replace('": "', '":"')
    if response.status != 200 or found != wanted or not named:
        raise process.ServerFailed(
            f"{running.name}, {workload.name}: status {response.status}, {found} of {wanted} "
            f"events, model named right: {named}: {text[:300]}"
        )


def _start_stub(stack: ExitStack, binary: Path, log: Path, core: int) -> tuple[int, int]:
    port = process.free_port()
    started = process.start([str(binary), str(port)], core=core, log=log)
    stack.callback(process.stop, started)
    process.wait_until_ready(started, port, "/health", log, timeout=5)
    return port, started.pid


def _start(
    stack: ExitStack, contender: Contender, fleet: Fleet, folder: Path, core: int
) -> str | None:
    """Start one contender and enter it in the fleet, or return why that failed."""
    shared = fleet.running.get(contender.process_of or "")
    if shared is not None:
        fleet.running[contender.name] = _running(contender, shared.port, shared.pid, shared.key)
        return None
    home = folder / contender.name
    home.mkdir()
    site = Site(home, process.free_port(), process.free_port(), fleet.stubs)
    log = home / "output.log"
    started: subprocess.Popen[bytes] = process.start(
        contender.command(site), core=core, log=log, env=contender.env
    )
    stack.callback(process.stop, started)
    try:
        process.wait_until_ready(started, site.port, contender.ready, log, contender.start_timeout)
    except process.ServerFailed as failure:
        process.stop(started)
        return str(failure)
    fleet.running[contender.name] = _running(contender, site.port, started.pid, site.key)
    return None


def _running(contender: Contender, port: int, pid: int, key: str) -> Running:
    return Running(contender.name, port, pid, key, contender.model, contender.max_connections)
