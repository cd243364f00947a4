"""Asks every backend, again and again, whether it is healthy."""

from __future__ import annotations

import asyncio
import logging
import os
import socket
import ssl
from collections.abc import Awaitable, Callable, Iterable

import httpx

from gateway.routing.backend import Backend

logger = logging.getLogger(__name__)


class Prober:
    """Probes each backend on its own, so that one that hangs delays the news of no other.

    One success brings a backend up; `failures` in a row take it down. A probe that takes longer
    than `timeout`, or raises, has failed.

    Args:
        backends: those in force now; asked anew each round.
        probe: whether one backend is healthy.
        changed: called when a backend came up, went down, or its circuit closed.
        interval: seconds between rounds; a backend whose probe is still open sits a round out.
        timeout: seconds a probe may take.
    """

    def __init__(
        self,
        backends: Callable[[], Iterable[Backend]],
        probe: Callable[[Backend], Awaitable[bool]],
        changed: Callable[[Backend], None],
        *,
        interval: float = 2.0,
        timeout: float = 2.0,
        failures: int = 2,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self._backends = backends
        self._probe = probe
        self._changed = changed
        self._interval = interval
        self._timeout = timeout
        self._failures = failures
        self._sleep = sleep
        self._open: set[Backend] = set()

    async def run(self) -> None:
        """Probe until cancelled; the probes under way are then cancelled too."""
        async with asyncio.TaskGroup() as group:
            while True:
                for backend in self._backends():
                    if backend not in self._open:
                        self._open.add(backend)
                        group.create_task(self._check(backend))
                await self._sleep(self._interval)

    async def _check(self, backend: Backend) -> None:
        try:
            healthy = await self._ask(backend)
        finally:
            self._open.discard(backend)
        # Not whether it is usable: with its cooldown's end a circuit lets one in, unnoticed, and
        # this is who tells those that wait.
        before = backend.up, backend.circuit.closed
        self._note(backend, healthy)
        if (backend.up, backend.circuit.closed) != before:
            self._changed(backend)

    async def _ask(self, backend: Backend) -> bool:
        try:
            async with asyncio.timeout(self._timeout):
                return await self._probe(backend)
        except TimeoutError:
            backend.trouble = f"no answer within {self._timeout:g} s"
            return False
        except Exception:
            # Whatever goes wrong in one probe, the others must go on.
            logger.exception("the health probe of backend %s failed", backend.name)
            return False

    def _note(self, backend: Backend, healthy: bool) -> None:
        backend.checked = True
        if healthy:
            backend.probe_failures = 0
            backend.circuit.probed()
            up = True
        else:
            backend.probe_failures += 1
            up = backend.up and backend.probe_failures < self._failures
        if up is not backend.up:
            state = "up" if up else f"down ({backend.trouble or 'no probe ended'})"
            level = logging.INFO if up else logging.WARNING
            logger.log(level, "backend %s is %s", backend.name, state)
        backend.up = up


class HttpProbe:
    """A probe: `GET /health` of the backend, healthy if the answer is 200 (vLLM says 503 when its
    engine is dead). The body is not read. Why it failed stands in the backend's `trouble`.

    Args:
        client_of: the client that reaches a backend; it keeps no connection.
        timeout: seconds for each step of a probe.
    """

    def __init__(
        self, client_of: Callable[[Backend], httpx.AsyncClient], timeout: float = 2.0
    ) -> None:
        self._client_of = client_of
        self._timeout = timeout

    async def __call__(self, backend: Backend) -> bool:
        headers = {}
        if backend.api_key is not None:
            headers["authorization"] = f"Bearer {backend.api_key.decode()}"
        try:
            async with self._client_of(backend).stream(
                "GET", f"{backend.url}/health", headers=headers, timeout=self._timeout
            ) as response:
                healthy = response.status_code == httpx.codes.OK
                backend.trouble = "" if healthy else f"HTTP {response.status_code}"
                return healthy
        except (httpx.HTTPError, httpx.InvalidURL) as error:
            by = " by its proxy" if backend.settings.proxy else ""
            backend.trouble = f"no answer{by}: {_reason(error)}"
            return False


def _reason(error: BaseException) -> str:
    """What the system said; httpx itself says "All connection attempts failed" of anything."""
    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, BaseExceptionGroup):  # one for each address of a name
            cause = cause.exceptions[0]
        # TLS and names that are not found count errors of their own, and httpx repeats their words.
        other = isinstance(cause, ssl.SSLError | socket.gaierror)
        if isinstance(cause, OSError) and cause.errno and not other:
            return os.strerror(cause.errno)
        cause = cause.__cause__ or cause.__context__
    return str(error) or type(error).__name__
