"""Puts together who is looked at during the rounds: engines and GPUs, as far as they are known."""

from __future__ import annotations

import ssl
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from importlib import import_module

import httpx

from gateway.bench.watch.engines import Engine, Engines, Fetch
from gateway.bench.watch.gpus import NO_PACKAGE, Dcgm, Gpus, Nvml

TIMEOUT = 5.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Watched:
    """What to look at.

    Attributes:
        engines: whose `/metrics` to read.
        exporters: metrics pages of dcgm-exporters.
        gpu_arms: which arm a GPU serves, by its name.
    """

    engines: Sequence[Engine]
    exporters: Sequence[str] = ()
    gpu_arms: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Watches:
    """Attributes:
    said: a sentence on each that could not be looked at.
    simulated: an engine said that it is simulated.
    """

    engines: Engines | None
    gpus: tuple[Gpus, ...]
    said: tuple[str, ...]
    simulated: bool


@asynccontextmanager
async def watching(watched: Watched) -> AsyncIterator[Watches]:
    """Open what can be opened; what cannot costs a sentence, and the rest goes on."""
    said: list[str] = []
    async with AsyncExitStack() as stack:
        urls = [*(one.url for one in watched.engines), *watched.exporters]
        client = await stack.enter_async_context(_client(urls))
        fetch = _fetcher(client)
        simulated = False
        for one in watched.engines:
            version = await fetch(f"{one.url}/version")
            simulated = simulated or (version is not None and b"simulated" in version)
            page = await fetch(f"{one.url}/metrics")
            if page is None:
                said.append(
                    f"Engine {one.name} was not looked at: {one.url}/metrics does not answer."
                )
            elif b"vllm:" not in page:
                said.append(f"Engine {one.name} was not looked at: {one.url}/metrics is no vLLM's.")
        for url in watched.exporters:
            if b"DCGM_FI_DEV_" not in (await fetch(url) or b""):
                said.append(f"GPUs of {url} were not looked at: no dcgm-exporter answers there.")
        gpus = [Gpus(Dcgm(url, fetch).look, watched.gpu_arms) for url in watched.exporters]
        local = _nvml(said, stack)
        if local is not None:
            gpus.append(Gpus(local.look, watched.gpu_arms))
        engines = Engines(watched.engines, fetch) if watched.engines else None
        yield Watches(engines, tuple(gpus), tuple(said), simulated)


def _nvml(said: list[str], stack: AsyncExitStack) -> Nvml | None:
    try:
        nvml = Nvml(import_module("pynvml"))
    except ImportError:
        said.append(NO_PACKAGE)
        return None
    except OSError as error:
        said.append(f"No GPU of this machine was looked at ({error}); --dcgm names an exporter.")
        return None
    stack.callback(nvml.close)
    return nvml


def _client(urls: Sequence[str]) -> httpx.AsyncClient:
    secure = any(url.startswith("https:") for url in urls)
    return httpx.AsyncClient(
        timeout=TIMEOUT,
        trust_env=False,
        verify=ssl.create_default_context() if secure else False,
    )


def _fetcher(client: httpx.AsyncClient) -> Fetch:
    async def fetch(url: str) -> bytes | None:
        try:
            reply = await client.get(url)
        except (httpx.HTTPError, httpx.InvalidURL):
            return None
        return reply.content if reply.is_success else None

    return fetch
