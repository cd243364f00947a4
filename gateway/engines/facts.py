"""Asks an engine, once it is up, what it is: version, longest prompt, caches, scheduler, APIs."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from typing import Protocol, TypeVar

import httpx
import msgspec

from gateway.engines.http import LONGEST_ANSWER, LONGEST_PAGE, EngineHttp
from gateway.engines.offered import ROUTES, Listing, judged, listed
from gateway.records import EngineFacts
from gateway.settings import BackendSettings
from gateway.vllm import server_info
from gateway.vllm.page import CacheConfig, read_page
from gateway.vllm.server_info import SchedulerConfig, ServerInfo

log = logging.getLogger(__name__)

LONGEST_LISTING = 2 * 2**20
LONGEST_VERSION = 64
MODELS_NAMED = 10
# vLLM's first `/server_info` lists the machine's packages and devices, which took 10 s beside
# other work; it is kept for later answers.
PATIENCE = 12.0

T = TypeVar("T")


class Asked(Protocol):
    """A backend whose engine is asked."""

    @property
    def name(self) -> str: ...
    @property
    def model(self) -> str: ...
    @property
    def url(self) -> str: ...
    @property
    def api_key(self) -> bytes | None: ...
    @property
    def settings(self) -> BackendSettings: ...


class _Served(msgspec.Struct):
    id: str
    max_model_len: int | None = None


class _Models(msgspec.Struct):
    data: list[_Served]


class _Version(msgspec.Struct):
    version: str


class Interview:
    """Learns the facts of one engine at a time, over HTTP, as vLLM tells them.

    Args:
        timeout: seconds for its model and version together, and for each of the rest; its
            scheduler may take `PATIENCE` times as long.
    """

    def __init__(self, http: EngineHttp, timeout: float) -> None:
        self._http = http
        self._timeout = timeout

    async def facts(self, backend: Asked, upstream_model: str) -> EngineFacts:
        """What it tells, but for its scheduler. Only its model and version have to be answered for.

        Raises:
            httpx.HTTPError, httpx.InvalidURL, TimeoutError: it did not answer, or failed.
        """
        async with asyncio.timeout(self._timeout):
            models = await self._ask(backend, "/v1/models", _Models)
            version = await self._ask(backend, "/version", _Version)
        apis = await self._apis(backend) if backend.settings.apis == "auto" else None
        cache = await self._cache(backend)
        served = _found(backend, upstream_model, models.data) if models else None
        return EngineFacts(
            version=version.version[:LONGEST_VERSION] if version else "",
            max_model_len=_window(served),
            apis=apis,
            block_size=cache.block_size,
            cache_tokens=cache.tokens,
            prefix_caching=cache.prefix_caching,
            gpu_memory_utilization=cache.gpu_memory_utilization,
            other_models=served if isinstance(served, tuple) else None,
        )

    async def _apis(self, backend: Asked) -> frozenset[str] | None:
        """The APIs it offers. That it tells nothing of them costs no other fact."""
        with contextlib.suppress(httpx.HTTPError, TimeoutError):
            async with asyncio.timeout(self._timeout):
                listing = await self._listing(backend)
                if listing is not None and (apis := listed(listing)) is not None:
                    return apis
                return judged(
                    {api: await self._http.status(backend, ROUTES[api]) for api in ROUTES}
                )
        return None

    async def _listing(self, backend: Asked) -> Listing | None:
        try:
            return await self._ask(backend, "/openapi.json", Listing, LONGEST_LISTING)
        except httpx.HTTPStatusError:
            return None

    async def _cache(self, backend: Asked) -> CacheConfig:
        with contextlib.suppress(httpx.HTTPError, TimeoutError, ValueError):
            async with asyncio.timeout(self._timeout):
                body = await self._http.get(backend, "/metrics", LONGEST_PAGE)
                page = await asyncio.to_thread(read_page, body.decode()) if body else None
            if page is not None:
                return page.cache
        return CacheConfig()

    async def scheduler(self, backend: Asked) -> SchedulerConfig:
        """Its token budget, for which vLLM looks at the whole machine first: seconds, once."""
        with contextlib.suppress(httpx.HTTPError, TimeoutError):
            async with asyncio.timeout(self._timeout * PATIENCE):
                info = await self._ask(backend, server_info.PATH, ServerInfo, patience=PATIENCE)
            if info is not None:
                return info.scheduler
        return SchedulerConfig()

    async def _ask(
        self,
        backend: Asked,
        path: str,
        kind: type[T],
        longest: int = LONGEST_ANSWER,
        patience: float = 1.0,
    ) -> T | None:
        """The answer, or None where it is none of this kind.

        Raises:
            httpx.HTTPError: there was no answer, or the server failed.
        """
        body = await self._http.get(backend, path, longest, patience)
        try:
            return None if body is None else msgspec.json.decode(body, type=kind)
        except (msgspec.DecodeError, RecursionError):
            return None


def _found(backend: Asked, model: str, served: list[_Served]) -> _Served | tuple[str, ...]:
    """The model among those served, or the names of the first of these others."""
    found = next((one for one in served if one.id == model), None)
    if found is not None:
        return found
    others = tuple(one.id for one in served[:MODELS_NAMED])
    log.warning(
        "backend %s serves no model %s but %s: see upstream_model of model %s",
        backend.name,
        model,
        ", ".join(others) or "none",
        backend.model,
    )
    return others


def _window(found: _Served | tuple[str, ...] | None) -> int | None:
    window = found.max_model_len if isinstance(found, _Served) else None
    return window if window is not None and window > 0 else None
