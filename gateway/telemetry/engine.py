"""What the engines say of themselves: version, longest prompt, and which APIs they offer."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import ssl
from collections.abc import Callable, Iterable
from types import TracebackType
from typing import Protocol, Self, TypeVar

import httpx
import msgspec

from gateway.records import EngineFacts
from gateway.settings import BackendSettings
from gateway.telemetry.offered import ROUTES, Listing, judged, listed

log = logging.getLogger(__name__)

# An engine with a thousand adapters lists them in half of this.
LONGEST_ANSWER = 2**20
LONGEST_LISTING = 2 * 2**20
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
    settings: BackendSettings

    @property
    def apis(self) -> frozenset[str] | None: ...


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
        peers: all backends of the model of this id.
        timeout: seconds that its model and version may take together, and its APIs.
        transport: for tests; the network by default.
    """

    def __init__(
        self,
        upstream_model: Callable[[str], str],
        peers: Callable[[str], Iterable[Asked]],
        timeout: float = 5.0,
        transport: httpx.AsyncBaseTransport | None = None,
    ) -> None:
        self._upstream_model = upstream_model
        self._peers = peers
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
        self._told: dict[str, str] = {}

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
            backend.facts = await self._facts(backend)
        except (httpx.HTTPError, httpx.InvalidURL, TimeoutError):
            backend.facts = None  # so that the next probe that succeeds is the next occasion
        else:
            self._compare(backend.model)
        finally:
            del self._open[backend]

    async def _facts(self, backend: Asked) -> EngineFacts:
        async with asyncio.timeout(self._timeout):
            models = await self._ask(backend, "/v1/models", _Models)
            version = await self._ask(backend, "/version", _Version)
        apis = await self._apis(backend) if backend.settings.apis == "auto" else None
        window = self._window(backend, models.data) if models else None
        return EngineFacts(version.version[:LONGEST_VERSION] if version else "", window, apis)

    async def _apis(self, backend: Asked) -> frozenset[str] | None:
        """The APIs it offers. That it tells nothing of them costs no other fact."""
        with contextlib.suppress(httpx.HTTPError, TimeoutError):
            async with asyncio.timeout(self._timeout):
                listing = await self._listing(backend)
                if listing is not None and (apis := listed(listing)) is not None:
                    return apis
                return judged({api: await self._try(backend, ROUTES[api]) for api in ROUTES})
        return None

    async def _listing(self, backend: Asked) -> Listing | None:
        try:
            return await self._ask(backend, "/openapi.json", Listing, LONGEST_LISTING)
        except httpx.HTTPStatusError:
            return None

    async def _try(self, backend: Asked, path: str) -> int:
        """The status of an answer to an empty request, which no route can take for a real one."""
        url = backend.url + path
        headers = self._headers(backend)
        async with self._client.stream("POST", url, headers=headers, json={}) as reply:
            return reply.status_code

    def _compare(self, model: str) -> None:
        """Say once that the backends of a model do not offer the same APIs."""
        known = {one.name: one.apis for one in self._peers(model) if one.apis is not None}
        told = "; ".join(f"{name}: {', '.join(sorted(apis))}" for name, apis in known.items())
        if len(set(known.values())) > 1 and self._told.get(model) != told:
            log.warning(
                "the backends of model %s do not offer the same APIs (%s): "
                "requests for an API that one lacks go to the others, or are translated for it",
                model,
                told,
            )
        self._told[model] = told

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

    async def _ask(
        self, backend: Asked, path: str, kind: type[T], longest: int = LONGEST_ANSWER
    ) -> T | None:
        """The answer, or None where it is none of this kind.

        Raises:
            httpx.HTTPError: there was no answer, or the server failed.
        """
        body = bytearray()
        headers = self._headers(backend)
        async with self._client.stream("GET", backend.url + path, headers=headers) as reply:
            if reply.is_server_error:
                reply.raise_for_status()
            async for piece in reply.aiter_bytes():
                body += piece
                if len(body) > longest:
                    return None
        try:
            return msgspec.json.decode(body, type=kind)
        except msgspec.DecodeError:
            return None

    def _headers(self, backend: Asked) -> dict[str, str]:
        key = backend.api_key
        return {} if key is None else {"authorization": f"Bearer {key.decode()}"}
