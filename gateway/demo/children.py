"""Child processes that say on which port they listen, and that never outlive their parent."""

from __future__ import annotations

import asyncio
import os
import re
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

from gateway.errors import GatewayError

START_TIMEOUT = 30.0
STOP_TIMEOUT = 5.0
POLL = 0.05

_ADDRESS = re.compile(r"http://127\.0\.0\.1:(\d+)")


class Child:
    """`gateway ARGUMENTS` as a process of its own, its output in a file.

    It is a session of its own, so that Ctrl-C at the terminal reaches the parent alone, which
    then stops its children in order.

    Args:
        name: what to call it in errors.
        log: where its output goes.
        environment: added to what the parent has.
    """

    def __init__(
        self, name: str, arguments: Iterable[str], log: Path, environment: Mapping[str, str]
    ) -> None:
        self.name = name
        self._log = log
        # Settings of somebody's other gateway must not reach this one.
        inherited = {key: value for key, value in os.environ.items() if key[:8] != "GATEWAY_"}
        with log.open("wb") as output:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "gateway", *arguments],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                env=inherited | dict(environment),
                start_new_session=True,
            )

    @property
    def pid(self) -> int:
        return self._process.pid

    def check(self) -> None:
        """Raises:
        GatewayError: the process has ended, with the end of what it said.
        """
        status = self._process.poll()
        if status is not None:
            said = self._log.read_text(errors="replace").strip().splitlines()[-5:]
            words = ": " + "\n".join(said) if said else "."
            raise GatewayError(f"{self.name} ended with status {status}{words}")

    async def port(self, clock: Callable[[], float] = time.monotonic) -> int:
        """The port it listens on, once it says so.

        Raises:
            GatewayError: it ended, or says nothing for `START_TIMEOUT` seconds.
        """
        deadline = clock() + START_TIMEOUT
        while clock() < deadline:
            found = _ADDRESS.search(self._log.read_text(errors="replace"))
            if found:
                return int(found[1])
            self.check()
            await asyncio.sleep(POLL)
        raise GatewayError(f"{self.name} did not start within {START_TIMEOUT:g} seconds.")

    def stop(self) -> None:
        """End it, by force if it takes longer than `STOP_TIMEOUT` seconds."""
        if self._process.poll() is not None:
            return
        self._process.terminate()
        try:
            self._process.wait(STOP_TIMEOUT)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
