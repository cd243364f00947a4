"""What the engines say of themselves: their version, and how long a prompt they take."""

from __future__ import annotations

import asyncio
import logging
import ssl
from collections.abc import Callable
from types import TracebackType
from typing import Protocol, Self, TypeVar

import httpx
import msgspec

from gateway.records import EngineFacts

log = logging.getLogger(__name__)

# An engine with a thousand adapters lists them in half of this.
LONGEST_ANSWER = 2**20
LONGEST_VERSION = 64

T = TypeVar("T")


class Asked(Protocol):
    """A backend whose engine is asked."""

    name: str
    model: str
    url: str
    api_key: bytes | None
    facts: EngineFacts | None
    probe_failures: int


class _Served(msgspec.Struct):
    id: str
    max_model_len: int | None = None


class _Models(msgspec.Struct):
    data: list[_Served]


class _Version(msgspec.Struct):
    version: str


class Engines:
    """Learns a backend's `facts` over HTTP, as vLLM tells them, each time it has come up.

    It asks beside the health probes: an engine that is slow to tell is none that is down.

    Args:
        upstream_model: what engines call the model of this id.
        timeout: seconds both answers may take together.
        transport: for tests; the network by default.
    """

    def __init__(
        self,
        upstream_model: Callable[[str], str],
        timeout: float = 5.0,
        transport: httpx.AsyncBaseTransport | None = None,
    ) -> None:
        self._upstream_model = upstream_model
        self._timeout = timeout
        self._client = httpx.AsyncClient(
            timeout=timeout,
            trust_env=False,
            # The authorities that requests to backends trust, too.
            verify=ssl.create_default_context(),
            limits=httpx.Limits(max_connections=None, max_keepalive_connections=0),
            transport=transport,
        )
        self._open: dict[Asked, asyncio.Task[None]] = {}

    def healthy(self, backend: Asked) -> None:
        """A health probe has succeeded; the failures before it still stand in `backend`."""
        news = backend.facts is None or backend.probe_failures > 0
        if news and backend not in self._open:
            self._open[backend] = asyncio.create_task(self._learn(backend))

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        tasks = list(self._open.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await self._client.aclose()

    async def _learn(self, backend: Asked) -> None:
        try:
            async with asyncio.timeout(self._timeout):
                models = await self._ask(backend, "/v1/models", _Models)
                version = await self._ask(backend, "/version", _Version)
        except (httpx.HTTPError, httpx.InvalidURL, TimeoutError):
            backend.facts = None  # so that the next probe that succeeds is the next occasion
            return
        finally:
            del self._open[backend]
        window = self._window(backend, models.data) if models else None
        backend.facts = EngineFacts(version.version[:LONGEST_VERSION] if version else "", window)

    def _window(self, backend: Asked, served: list[_Served]) -> int | None:
        model = self._upstream_model(backend.model)
        found = next((one for one in served if one.id == model), None)
        if found is None:
            log.warning(
                "backend %s serves no model %s but %s: see upstream_model of model %s",
                backend.name,
                model,
                ", ".join(one.id for one in served[:10]) or "none",
                backend.model,
            )
            return None
        window = found.max_model_len
        return window if window is not None and window > 0 else None

    async def _ask(self, backend: Asked, path: str, kind: type[T]) -> T | None:
        """The answer, or None where it is none of this kind.

        Raises:
            httpx.HTTPError: there was no answer, or the server failed.
        """
        headers = {}
        if backend.api_key is not None:
            headers["authorization"] = f"Bearer {backend.api_key.decode()}"
        body = bytearray()
        async with self._client.stream("GET", backend.url + path, headers=headers) as reply:
            if reply.is_server_error:
                reply.raise_for_status()
            async for piece in reply.aiter_bytes():
                body += piece
                if len(body) > LONGEST_ANSWER:
                    return None
        try:
            return msgspec.json.decode(body, type=kind)
        except msgspec.DecodeError:
            return None
