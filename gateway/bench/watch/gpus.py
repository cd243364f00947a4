"""GPU memory and utilisation during a round: from NVML on this machine, or a DCGM exporter."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from statistics import fmean
from types import ModuleType
from typing import Any

from prometheus_client.parser import text_string_to_metric_families

from gateway.bench.results import GpuUse
from gateway.bench.watch.engines import Fetch
from gateway.extras import install

INTERVAL = 0.25
MIB = 2**20

NO_PACKAGE = f"GPUs were not looked at: the package nvidia-ml-py is missing ({install('bench')})."


@dataclass(frozen=True, slots=True)
class Look:
    """One GPU at one moment; None where it was not told.

    Attributes:
        name: its index, and its host where there may be several.
        used, total: memory in MiB.
        busy: part of the time since the last look in which a kernel ran, from 0 to 1.
    """

    name: str
    used: float | None
    total: float | None
    busy: float | None


@dataclass(slots=True)
class _Seen:
    used: list[float] = field(default_factory=list)
    shares: list[float] = field(default_factory=list)
    busy: list[float] = field(default_factory=list)

    def add(self, look: Look) -> None:
        if look.used is not None:
            self.used.append(look.used)
            if look.total:
                self.shares.append(look.used / look.total)
        if look.busy is not None:
            self.busy.append(look.busy)


class Gpus:
    """Watches GPUs; its shape is `rounds.GpuWatch`.

    Args:
        look: tells every GPU's state now; raises OSError or ValueError where it cannot.
        arms: which arm a GPU serves, by its name; those that are not named serve any.
    """

    def __init__(
        self,
        look: Callable[[], Awaitable[list[Look]]],
        arms: Mapping[str, str],
        interval: float = INTERVAL,
    ) -> None:
        self._look = look
        self._arms = arms
        self._interval = interval
        self._seen: dict[str, _Seen] = {}

    @contextlib.asynccontextmanager
    async def watching(self, arm: str) -> AsyncIterator[None]:
        """Look again and again until the round is over."""
        self._seen = {}
        polling = asyncio.create_task(self._poll())
        try:
            yield
        finally:
            polling.cancel()
            await asyncio.gather(polling, return_exceptions=True)

    def uses(self) -> tuple[GpuUse, ...]:
        """Of the latest round."""
        return tuple(
            GpuUse(
                name=name,
                arm=self._arms.get(name, ""),
                memory_peak=max(seen.shares, default=None),
                memory_peak_mib=max(seen.used, default=None),
                utilisation=fmean(seen.busy) if seen.busy else None,
            )
            for name, seen in sorted(self._seen.items())
        )

    async def _poll(self) -> None:
        while True:
            with contextlib.suppress(OSError, ValueError):
                for look in await self._look():
                    self._seen.setdefault(look.name, _Seen()).add(look)
            await asyncio.sleep(self._interval)


class Nvml:
    """The GPUs of this machine.

    Args:
        pynvml: the module of nvidia-ml-py.

    Raises:
        OSError: there is no driver, or no GPU.
    """

    def __init__(self, pynvml: ModuleType) -> None:
        self._nvml = pynvml
        try:
            pynvml.nvmlInit()
            count = pynvml.nvmlDeviceGetCount()
            self._handles = [pynvml.nvmlDeviceGetHandleByIndex(n) for n in range(count)]
        except pynvml.NVMLError as error:
            raise OSError(f"NVML: {error}") from None
        if not self._handles:
            raise OSError("NVML: there is no GPU")

    async def look(self) -> list[Look]:
        """In a thread: a driver may take its time."""
        return await asyncio.to_thread(self._looks)

    def close(self) -> None:
        self._nvml.nvmlShutdown()

    def _looks(self) -> list[Look]:
        return [self._one(str(n), handle) for n, handle in enumerate(self._handles)]

    def _one(self, name: str, handle: object) -> Look:
        memory = self._told(self._nvml.nvmlDeviceGetMemoryInfo, handle)
        rates = self._told(self._nvml.nvmlDeviceGetUtilizationRates, handle)
        return Look(
            name,
            memory.used / MIB if memory else None,
            memory.total / MIB if memory else None,
            rates.gpu / 100 if rates else None,
        )

    def _told(self, ask: Callable[[object], Any], handle: object) -> Any:
        """None where this GPU does not support it."""
        try:
            return ask(handle)
        except self._nvml.NVMLError:
            return None


class Dcgm:
    """The GPUs of another machine, through its dcgm-exporter.

    Args:
        url: of its metrics page.
    """

    def __init__(self, url: str, fetch: Fetch) -> None:
        self._url = url
        self._fetch = fetch

    async def look(self) -> list[Look]:
        """Raises:
        OSError: the page could not be read.
        ValueError: it is no metrics page.
        """
        page = await self._fetch(self._url)
        if page is None:
            raise OSError(f"{self._url} could not be read")
        return read_dcgm(page.decode(errors="replace"))


def read_dcgm(page: str) -> list[Look]:
    """The GPUs of a dcgm-exporter's page; none where it tells of none.

    Raises:
        ValueError: it is no metrics page.
    """
    told: dict[str, dict[str, float]] = {}
    lines = "".join(f"{line}\n" for line in page.splitlines() if line.startswith("DCGM_FI_DEV_"))
    for family in text_string_to_metric_families(lines):
        for sample in family.samples:
            host = sample.labels.get("Hostname", "")
            index = sample.labels.get("gpu", "")
            name = f"{host}/{index}" if host else index
            told.setdefault(name, {})[sample.name] = sample.value
    return [_dcgm_look(name, values) for name, values in told.items()]


def _dcgm_look(name: str, values: Mapping[str, float]) -> Look:
    used, free = values.get("DCGM_FI_DEV_FB_USED"), values.get("DCGM_FI_DEV_FB_FREE")
    reserved = values.get("DCGM_FI_DEV_FB_RESERVED", 0.0)
    total = None if used is None or free is None else used + free + reserved
    busy = values.get("DCGM_FI_DEV_GPU_UTIL")
    return Look(name, used, total, None if busy is None else busy / 100)
