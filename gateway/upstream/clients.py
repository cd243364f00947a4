"""The HTTP clients of what the gateway asks of backends on its own account: probes, engine facts.

They go the way that requests go: directly, or by the backend's proxy, whatever the environment
names; and they trust the same authorities.
"""

from __future__ import annotations

import asyncio
import ssl
from typing import Protocol

import httpx

from gateway.settings import BackendSettings


class Reached(Protocol):
    """A backend."""

    @property
    def settings(self) -> BackendSettings: ...


class Clients:
    """One client for each proxy, and one for none; made when first asked for.

    Args:
        transport: for tests; the network by default.
    """

    def __init__(self, transport: httpx.AsyncBaseTransport | None = None) -> None:
        self._transport = transport
        self._made: dict[str | None, httpx.AsyncClient] = {}

    def __call__(self, backend: Reached) -> httpx.AsyncClient:
        """The client that reaches this backend; each request states its own time limit."""
        secret = backend.settings.proxy
        proxy = secret.get_secret_value() if secret else None
        client = self._made.get(proxy)
        if client is None:
            client = self._made[proxy] = self._make(proxy)
        return client

    def _make(self, proxy: str | None) -> httpx.AsyncClient:
        return httpx.AsyncClient(
            trust_env=False,
            verify=ssl.create_default_context(),
            # httpx admits 100 connections by default; the hundred-and-first backend would be
            # down. None is kept: that a backend still accepts them is part of the question.
            limits=httpx.Limits(max_connections=None, max_keepalive_connections=0),
            transport=self._transport,
            proxy=proxy,
        )

    async def aclose(self) -> None:
        await asyncio.gather(*(client.aclose() for client in self._made.values()))
