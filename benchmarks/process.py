"""Start servers on a chosen core, and read from the kernel what they use.

CPU time comes from the scheduler's accounting (`/proc/PID/task/*/schedstat`, nanoseconds), summed
over the process and its descendants: it holds still on a noisy machine where throughput and
latency do not, because time spent waiting for a core is not in it.
"""

from __future__ import annotations

import ctypes
import http.client
import os
import signal
import socket
import subprocess
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path

PROC = Path("/proc")
TERM_GRACE = 10.0
GONE = (FileNotFoundError, ProcessLookupError)
"""A process may end while it is looked at."""
_PR_SET_PDEATHSIG = 1


class ServerFailed(RuntimeError):
    """A server did not start, or ended by itself; the message holds the end of its log."""


def free_port() -> int:
    """A loopback port that was free a moment ago."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def start(
    argv: Sequence[str], *, core: int | None, log: Path, env: Mapping[str, str] | None = None
) -> subprocess.Popen[bytes]:
    """Start a process pinned to `core`, writing both outputs to `log`; it dies with us.

    Without a core it runs where the scheduler puts it.
    """
    prctl = ctypes.CDLL(None).prctl

    def prepare() -> None:
        if core is not None:
            os.sched_setaffinity(0, {core})
        prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)

    with log.open("wb") as output:
        return subprocess.Popen(
            argv,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            env={**os.environ, **(env or {})},
            preexec_fn=prepare,
            start_new_session=True,
        )


def stop(process: subprocess.Popen[bytes]) -> None:
    """End a process started here, politely at first, and whatever it leaves behind."""
    descendants = tree(process.pid)[1:]
    process.terminate()
    try:
        process.wait(TERM_GRACE)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait(TERM_GRACE)
    for pid in descendants:
        with suppress(*GONE):
            if os.getsid(pid) == process.pid:  # ours still, not another that got the number
                os.kill(pid, signal.SIGKILL)


def wait_until_ready(
    process: subprocess.Popen[bytes], port: int, path: str, log: Path, timeout: float
) -> None:
    """Wait until `GET path` answers 200.

    Raises:
        ServerFailed: the process ended, or `timeout` seconds passed.
    """
    deadline = time.monotonic() + timeout
    while time.monotonic() < deadline:
        if process.poll() is not None:
            raise ServerFailed(f"ended with status {process.returncode}: {tail(log)}")
        if _answers(port, path):
            return
        time.sleep(0.1)
    raise ServerFailed(f"not ready after {timeout:.0f} s: {tail(log)}")


def tail(log: Path, length: int = 600) -> str:
    """The end of a log file, for an error message."""
    return log.read_text(errors="replace")[-length:].strip() or "(its log is empty)"


def tree(pid: int) -> list[int]:
    """The process and all its living descendants."""
    found = [pid]
    for task in _tasks(pid):
        with suppress(*GONE):
            for child in (task / "children").read_text().split():
                found += tree(int(child))
    return found


def cpu_by_thread(pid: int) -> dict[str, int]:
    """Nanoseconds on a core so far, by thread, of the process and its descendants."""
    used: dict[str, int] = {}
    for member in tree(pid):
        for task in _tasks(member):
            with suppress(*GONE):
                used[task.name] = int((task / "schedstat").read_text().split()[0])
    return used


def cpu_between(before: Mapping[str, int], after: Mapping[str, int]) -> float:
    """Microseconds of CPU between two readings; a thread that ended in between is left out."""
    return sum(used - before.get(thread, 0) for thread, used in after.items()) / 1e3


def resident_kib(pid: int) -> int:
    """Resident memory of the process and its descendants, in KiB."""
    total = 0
    for member in tree(pid):
        with suppress(*GONE):
            for line in (PROC / str(member) / "status").read_text().splitlines():
                if line.startswith("VmRSS:"):
                    total += int(line.split()[1])
    return total


def _tasks(pid: int) -> list[Path]:
    with suppress(*GONE):
        return list((PROC / str(pid) / "task").iterdir())
    return []


def _answers(port: int, path: str) -> bool:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=2)
    try:
        connection.request("GET", path)
        return connection.getresponse().status == 200
    except (OSError, http.client.HTTPException):
        return False
    finally:
        connection.close()
