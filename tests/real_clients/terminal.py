"""A terminal of its own for an agent that goes on with a conversation in nothing else."""

from __future__ import annotations

import asyncio
import fcntl
import os
import struct
import termios
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.real_clients.harness import end

ROWS, COLUMNS = 40, 120
ENTER = b"\r"
UNHEARD = 5.0
"""Seconds after which a key is pressed again: it may have come before anybody listened."""


@dataclass
class Terminal:
    """Attributes:
    shown: all that the program has written so far, with what moves its cursor.
    """

    side: int
    shown: bytes = b""

    async def shows(self, text: str, timeout: float = 120) -> None:
        await self._until(lambda: text.encode() in self.shown, timeout)

    async def enter(self, text: str, heard: Callable[[], bool], timeout: float = 120) -> None:
        """Type a line, and press Enter until it was heard."""
        os.write(self.side, text.encode())
        async with asyncio.timeout(timeout):
            while not heard():
                await asyncio.sleep(0.5)
                os.write(self.side, ENTER)
                try:
                    await self._until(heard, UNHEARD)
                except TimeoutError:
                    continue

    async def _until(self, done: Callable[[], bool], timeout: float) -> None:
        async with asyncio.timeout(timeout):
            while not done():
                self._read()
                await asyncio.sleep(0.05)

    def _read(self) -> None:
        try:
            self.shown += os.read(self.side, 1 << 16)
        except BlockingIOError:
            return


@asynccontextmanager
async def terminal(
    command: Sequence[str], folder: Path, variables: Mapping[str, str]
) -> AsyncIterator[Terminal]:
    """The program in a terminal; it is killed, with its children, in the end."""
    side, its = os.openpty()
    try:
        fcntl.ioctl(its, termios.TIOCSWINSZ, struct.pack("HHHH", ROWS, COLUMNS, 0, 0))
        os.set_blocking(side, False)
        child = await asyncio.create_subprocess_exec(
            *command,
            cwd=folder,
            env={**variables, "TERM": "xterm"},
            stdin=its,
            stdout=its,
            stderr=its,
            start_new_session=True,
        )
        try:
            yield Terminal(side)
        finally:
            end(child.pid)
            await child.wait()
    finally:
        os.close(its)
        os.close(side)
