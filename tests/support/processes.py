"""Processes that say in their output on which port of the loopback address they listen."""

from __future__ import annotations

import os
import re
import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

START_TIMEOUT = 30.0
STOP_TIMEOUT = 10.0

_ADDRESS = re.compile(r"http://127\.0\.0\.1:(\d+)")


class Process:
    """A running command, its output in a file.

    Args:
        environment: added to what the tests have, but for the settings of a gateway.
        cwd: where it runs; somewhere empty shows whether it writes where it must not.
    """

    def __init__(
        self,
        command: Sequence[str],
        log: Path,
        environment: Mapping[str, str] | None = None,
        cwd: Path | None = None,
    ) -> None:
        self._log = log
        inherited = {key: value for key, value in os.environ.items() if key[:8] != "GATEWAY_"}
        with log.open("wb") as output:
            self._process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                env=inherited | dict(environment or {}),
                cwd=cwd,
            )

    def port(self) -> int:
        """The port it listens on, once it says so."""
        deadline = time.monotonic() + START_TIMEOUT
        while not (found := _ADDRESS.search(self.said())):
            assert self._process.poll() is None and time.monotonic() < deadline, self.said()
            time.sleep(0.05)
        return int(found[1])

    def said(self) -> str:
        return self._log.read_text(errors="replace")

    def stop(self) -> int:
        """End it as a container's engine does; its status."""
        self._process.terminate()
        try:
            return self._process.wait(STOP_TIMEOUT)
        except subprocess.TimeoutExpired:
            self._process.kill()
            return self._process.wait()


@contextmanager
def process(
    command: Sequence[str],
    log: Path,
    environment: Mapping[str, str] | None = None,
    cwd: Path | None = None,
) -> Iterator[Process]:
    started = Process(command, log, environment, cwd)
    try:
        yield started
    finally:
        started.stop()
