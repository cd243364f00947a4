"""uvicorn's server with a drain in two steps.

Load balancers take a moment to see that `/ready` has turned 503, and send traffic meanwhile. So
the listener stays open for `drain_delay` seconds after the signal; only then does uvicorn stop
accepting and wait for open streams. A second signal ends at once.
"""

from __future__ import annotations

import asyncio
import logging
import signal
from collections.abc import Callable
from types import FrameType

import uvicorn

log = logging.getLogger("gateway")


class Server(uvicorn.Server):
    """A uvicorn server that drains on SIGTERM and SIGINT.

    Args:
        on_drain: called when draining begins.
        drain_delay: seconds for which new requests are still accepted.
    """

    def __init__(
        self, config: uvicorn.Config, on_drain: Callable[[], None], drain_delay: float
    ) -> None:
        super().__init__(config)
        self._on_drain = on_drain
        self._drain_delay = drain_delay
        self._draining = False

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        if self._draining:
            self.force_exit = True
            self.should_exit = True
            return
        self._draining = True
        self._on_drain()
        # Someone at a terminal wants it to stop; only an orchestrator needs the delay.
        delay = 0.0 if sig == signal.SIGINT else self._drain_delay
        log.info("draining: new requests are accepted for another %g s", delay)
        loop = asyncio.get_running_loop()
        loop.call_soon_threadsafe(loop.call_later, delay, self._stop_accepting)

    def _stop_accepting(self) -> None:
        self.should_exit = True
