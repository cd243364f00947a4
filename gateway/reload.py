"""Takes a changed configuration over: when the file changes, on SIGHUP, or when asked to.

A configuration with faults changes nothing: the one in force stays, and every fault is told.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Callable
from pathlib import Path

from gateway.errors import ConfigError
from gateway.settings import Settings

log = logging.getLogger("gateway")

Signature = tuple[int, int, int]


class Reloader:
    """Watches one configuration file.

    Args:
        path: the file. It may be a symbolic link that is swapped, as Kubernetes does.
        load: reads it; raises ConfigError.
        apply: puts settings in force.
        interval: seconds between looks at the file.
    """

    def __init__(
        self,
        path: Path,
        load: Callable[[], Settings],
        apply: Callable[[Settings], None],
        interval: float = 1.0,
    ) -> None:
        self._path = path
        self._load = load
        self._apply = apply
        self._interval = interval
        self._seen = self._signature()

    def reload(self) -> Settings:
        """Read the file and put it in force.

        Raises:
            ConfigError: it has faults; nothing was changed.
        """
        self._seen = self._signature()
        try:
            settings = self._load()
        except ConfigError as error:
            faults = "\n  ".join(error.faults)
            log.error("configuration not reloaded, the old one stays in force:\n  %s", faults)
            raise
        self._apply(settings)
        log.info("configuration reloaded from %s", self._path)
        return settings

    def reload_quietly(self) -> None:
        """As `reload`, where nobody waits for the answer but the log."""
        with contextlib.suppress(ConfigError):  # `reload` has told every fault
            self.reload()

    async def watch(self) -> None:
        """Reload whenever the file changes, until cancelled."""
        while True:
            await asyncio.sleep(self._interval)
            signature = self._signature()
            if signature is not None and signature != self._seen:
                self.reload_quietly()

    def _signature(self) -> Signature | None:
        """What tells one state of the file from another; None while there is no file."""
        try:
            stat = self._path.stat()
        except OSError:
            return None
        return (stat.st_ino, stat.st_size, stat.st_mtime_ns)
