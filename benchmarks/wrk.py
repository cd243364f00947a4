"""Load from wrk: as many requests as a proxy takes, over a fixed number of connections."""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path

import msgspec

from benchmarks.workloads import PATH, SESSIONS

SCRIPT = Path(__file__).with_name("load.lua")
REPLY_TIMEOUT = 30
_RESULT = "RESULT "


@dataclass(frozen=True, slots=True)
class Outcome:
    """What wrk counted: replies, seconds, replies that were no success, failed sockets."""

    requests: int
    seconds: float
    non_2xx: int
    socket_errors: int
    p50_us: float


def obstacle() -> str | None:
    """Why wrk cannot be used here, or None."""
    return None if shutil.which("wrk") else "wrk is not installed (apt: wrk)"


def run(
    *, port: int, key: str, body: bytes, connections: int, seconds: float, core: int
) -> Outcome:
    """Load one proxy for about `seconds` from `core`.

    Raises:
        ValueError: wrk printed no result.
    """
    with tempfile.NamedTemporaryFile(suffix=".json") as file:
        file.write(body)
        file.flush()
        finished = subprocess.run(
            [
                *("taskset", "-c", str(core), "wrk", "-t1", f"-c{connections}"),
                *(f"-d{max(1, round(seconds))}s", "--timeout", f"{REPLY_TIMEOUT}s"),
                *("-s", str(SCRIPT), f"http://127.0.0.1:{port}{PATH}"),
                *("--", file.name, key, str(SESSIONS)),
            ],
            capture_output=True,
            text=True,
            timeout=seconds + 2 * REPLY_TIMEOUT,
        )
    return parse(finished.stdout + finished.stderr)


def parse(output: str) -> Outcome:
    """The counts that `load.lua` printed.

    Raises:
        ValueError: there are none.
    """
    for line in output.splitlines():
        if line.startswith(_RESULT):
            return msgspec.json.decode(line.removeprefix(_RESULT), type=Outcome)
    raise ValueError(f"wrk printed no result: {output[-400:]}")
