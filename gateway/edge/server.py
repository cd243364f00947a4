"""uvicorn's server with a drain in two steps.

Load balancers take a moment to see that `/ready` has turned 503, and send traffic meanwhile. So
the listener stays open for `drain_delay` seconds after the signal; only then does uvicorn stop
accepting and wait for open streams. A second signal ends at once.
"""

from __future__ import annotations

import asyncio
import logging
import math
import signal
import socket
from collections.abc import Callable
from types import FrameType

import uvicorn

from gateway.settings.tree import ServerSettings

log = logging.getLogger("gateway")


class Server(uvicorn.Server):
    """A uvicorn server that drains on SIGTERM and SIGINT.

    Args:
        settings: those in force; the times are taken when draining begins.
        on_start: called when requests are answered and signals are heeded.
        on_drain: called when draining begins.
    """

    def __init__(
        self,
        config: uvicorn.Config,
        settings: Callable[[], ServerSettings],
        on_start: Callable[[], None],
        on_drain: Callable[[], None],
    ) -> None:
        super().__init__(config)
        self._settings = settings
        self._on_start = on_start
        self._on_drain = on_drain
        self._draining = False

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self._on_start()

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        if self._draining:
            self.force_exit = True
            self.should_exit = True
            return
        self._draining = True
        self._on_drain()
        settings = self._settings()
        # Someone at a terminal wants it to stop; only an orchestrator needs the delay.
        delay = 0.0 if sig == signal.SIGINT else settings.drain_delay
        self.config.timeout_graceful_shutdown = math.ceil(settings.drain_timeout)
        log.info(
            "draining: %sopen requests have %d s to finish; a second signal ends at once",
            f"new requests are accepted for another {delay:g} s, then " if delay else "",
            self.config.timeout_graceful_shutdown,
        )
        loop = asyncio.get_running_loop()
        loop.call_soon_threadsafe(loop.call_later, delay, self._stop_accepting)

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        await super().shutdown(sockets)
        if self.force_exit:
            # uvicorn would leave all as it is: clients without a word, and the log unwritten.
            for task in self.server_state.tasks:
                task.cancel()
            await asyncio.gather(*self.server_state.tasks, return_exceptions=True)
            await self.lifespan.shutdown()

    def _stop_accepting(self) -> None:
        self.should_exit = True
