"""How long a readable socket waits for its time stamp, measured on a probe of our own.

A process beside this one writes the time into a pipe, over and over. What the event loop notes
when it reads that, less what was written, is what every reply's stamp is late by, too: other
callbacks in front of it, the interpreter's lock, a core that somebody else has. The clock is the
machine's monotonic one, which all processes share.
"""

from __future__ import annotations

import asyncio
import os
import struct
import subprocess
import sys
from collections.abc import Callable
from typing import Self

INTERVAL = 0.01
"""Mean seconds between two pulses; irregular, so as not to fall into step with an engine."""

_TIME = struct.Struct("d")
_WRITER = f"""
import os, random, struct, time
while True:
    time.sleep(random.uniform(0, {2 * INTERVAL}))
    os.write(1, struct.pack("d", time.monotonic()))
"""


class Pulse:
    """Runs the writing process while it is open, and collects delays on the running loop.

    Args:
        clock: `time.monotonic`, or what runs with it.
    """

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._pulses: list[tuple[float, float]] = []
        self._process: subprocess.Popen[bytes] | None = None
        self._pipe = -1

    def delays(self, since: float) -> list[float]:
        """Seconds of each pulse that was written since then; earlier ones are forgotten.

        By when they were written: those from before may be read after, where nothing was read
        for a while, and are not what a round has cost.
        """
        self._pulses = [pulse for pulse in self._pulses if pulse[0] >= since]
        return [read - written for written, read in self._pulses]

    async def __aenter__(self) -> Self:
        # It ends by itself when the pipe has lost its reader, however we end.
        self._process = subprocess.Popen(
            [sys.executable, "-I", "-S", "-c", _WRITER],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        assert self._process.stdout is not None
        self._pipe = self._process.stdout.fileno()
        os.set_blocking(self._pipe, False)
        asyncio.get_running_loop().add_reader(self._pipe, self._read)
        return self

    async def __aexit__(self, *_: object) -> None:
        self._stop_reading()
        assert self._process is not None and self._process.stdout is not None
        self._process.kill()
        self._process.stdout.close()
        self._process.wait()

    def _read(self) -> None:
        data = os.read(self._pipe, 512 * _TIME.size)
        now = self._clock()  # behind the read, as for replies: what comes in between is in it
        if not data:
            self._stop_reading()
        self._pulses += ((written, now) for (written,) in _TIME.iter_unpack(data))

    def _stop_reading(self) -> None:
        asyncio.get_running_loop().remove_reader(self._pipe)
