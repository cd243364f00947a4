"""Builds the stub upstream and asks it what it saw."""

from __future__ import annotations

import http.client
import json
import shutil
import subprocess
from pathlib import Path
from typing import TypedDict

SOURCE = Path(__file__).with_name("stub.c")


class State(TypedDict):
    """Counts of one stub: open connections, replies under way, cut by the client, finished."""

    open: int
    active: int
    aborted: int
    served: int


def build(folder: Path) -> Path:
    """Compile the stub into `folder`.

    Raises:
        FileNotFoundError: no C compiler on this machine.
        subprocess.CalledProcessError: it does not compile.
    """
    compiler = shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")
    if compiler is None:
        raise FileNotFoundError("no C compiler found: the stub upstream needs one (apt: gcc)")
    binary = folder / "stub"
    subprocess.run([compiler, "-O2", "-o", str(binary), str(SOURCE)], check=True)
    return binary


def state(port: int) -> State:
    """What one stub has seen so far."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=5)
    try:
        connection.request("GET", "/stub/state")
        seen: State = json.loads(connection.getresponse().read())
        return seen
    finally:
        connection.close()


def total(ports: tuple[int, ...]) -> State:
    """The counts of several stubs together."""
    states = [state(port) for port in ports]
    return State(
        open=sum(s["open"] for s in states),
        active=sum(s["active"] for s in states),
        aborted=sum(s["aborted"] for s in states),
        served=sum(s["served"] for s in states),
    )
