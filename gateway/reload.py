"""Takes a changed configuration over: when the file changes, on SIGHUP, or when asked to.

A configuration with faults changes nothing: the one in force stays, and every fault is told.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path

from gateway.errors import ConfigError, GatewayError
from gateway.settings import Settings

log = logging.getLogger("gateway")

Signature = tuple[int, int, int]

KEPT = "configuration not reloaded, the old one stays in force: %s"


def signature(path: Path) -> Signature | None:
    """What tells one state of a file from another; None while there is no file."""
    try:
        stat = path.stat()
    except OSError:
        return None
    return (stat.st_ino, stat.st_size, stat.st_mtime_ns)


class Reloader:
    """Watches one configuration file.

    Args:
        path: the file. It may be a symbolic link that is swapped, as Kubernetes does.
        seen: its signature from before it was read at the start: what changed since is news.
        load: reads it, in a thread; raises ConfigError.
        apply: puts settings in force and returns what they change, a line each; raises
            ConfigError and GatewayError.
        interval: seconds between looks at the file.
    """

    def __init__(
        self,
        path: Path,
        seen: Signature | None,
        load: Callable[[], Settings],
        apply: Callable[[Settings], Awaitable[Sequence[str]]],
        interval: float = 1.0,
    ) -> None:
        self._path = path
        self._seen = seen
        self._load = load
        self._apply = apply
        self._interval = interval
        self._asked = asyncio.Event()
        # Of two reloads at a time the one that read first could otherwise be applied last.
        self._turn = asyncio.Lock()

    async def reload(self) -> Settings:
        """Read the file and put it in force.

        Raises:
            ConfigError: it has faults; nothing was changed.
            GatewayError: the database cannot be used; nothing was changed.
        """
        async with self._turn:
            self._seen = signature(self._path)
            try:
                # A long file takes 0.3 s to read, in which open streams must go on.
                settings = await asyncio.to_thread(self._load)
                changed = await self._apply(settings)
            except ConfigError as error:
                log.error(KEPT, "".join(f"\n  {fault}" for fault in error.faults))
                raise
            except GatewayError as error:
                log.error(KEPT, error.detail or error.message)
                raise
            what = "".join(f"\n  {line}" for line in changed) or " without a change"
            log.info("configuration reloaded from %s%s", self._path, what)
            return settings

    def ask(self) -> None:
        """Have `watch` reload now, whether the file changed or not."""
        self._asked.set()

    async def watch(self) -> None:
        """Reload whenever the file changes or somebody asks, until cancelled."""
        while True:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(self._interval):
                    await self._asked.wait()
            current = signature(self._path)
            if self._asked.is_set() or (current is not None and current != self._seen):
                self._asked.clear()
                await self._reload_quietly()

    async def _reload_quietly(self) -> None:
        try:
            await self.reload()
        except (ConfigError, GatewayError):
            pass  # `reload` has told every fault
        except Exception:
            # Whatever one state of the file leads to, the next one must still be noticed.
            log.exception(KEPT, "an unexpected error")
