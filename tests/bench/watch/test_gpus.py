"""GPUs from NVML and from a DCGM exporter; here both are fakes, since there is no GPU."""

from __future__ import annotations

import asyncio
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from gateway.bench.watch.gpus import MIB, Dcgm, Gpus, Look, Nvml, read_dcgm

DCGM = """\
# HELP DCGM_FI_DEV_GPU_UTIL GPU utilization (in %).
# TYPE DCGM_FI_DEV_GPU_UTIL gauge
DCGM_FI_DEV_GPU_UTIL{gpu="0",UUID="GPU-1",device="nvidia0",Hostname="node1"} 81
DCGM_FI_DEV_GPU_UTIL{gpu="1",UUID="GPU-2",device="nvidia1",Hostname="node1"} 3
DCGM_FI_DEV_FB_FREE{gpu="0",UUID="GPU-1",device="nvidia0",Hostname="node1"} 28000
DCGM_FI_DEV_FB_USED{gpu="0",UUID="GPU-1",device="nvidia0",Hostname="node1"} 52000
some_other_metric{gpu="0"} 1
"""


class FakeNvml(ModuleType):
    """Two GPUs, as nvidia-ml-py tells them; the second one does not tell its utilisation."""

    class NVMLError(Exception):
        pass

    def __init__(self, count: int = 2, *, driver: bool = True) -> None:
        super().__init__("pynvml")
        self.count = count
        self.driver = driver
        self.used = 40 * 1024
        self.closed = False

    def nvmlInit(self) -> None:
        if not self.driver:
            raise self.NVMLError("NVML Shared Library Not Found")

    def nvmlShutdown(self) -> None:
        self.closed = True

    def nvmlDeviceGetCount(self) -> int:
        return self.count

    def nvmlDeviceGetHandleByIndex(self, index: int) -> int:
        return index

    def nvmlDeviceGetMemoryInfo(self, handle: int) -> Any:
        return SimpleNamespace(used=self.used * MIB, total=80 * 1024 * MIB)

    def nvmlDeviceGetUtilizationRates(self, handle: int) -> Any:
        if handle:
            raise self.NVMLError("Not Supported")
        return SimpleNamespace(gpu=80)


async def test_nvml_tells_memory_and_utilisation() -> None:
    nvml = Nvml(FakeNvml())
    first, second = await nvml.look()
    assert first == Look("0", 40 * 1024, 80 * 1024, 0.8)
    assert second.busy is None and second.used == 40 * 1024


@pytest.mark.parametrize(
    ("fake", "words"), [(FakeNvml(driver=False), "Not Found"), (FakeNvml(0), "no GPU")]
)
def test_no_driver_or_no_gpu_is_said(fake: FakeNvml, words: str) -> None:
    with pytest.raises(OSError, match=words):
        Nvml(fake)


async def test_the_peak_of_the_round_and_the_mean_of_the_utilisation() -> None:
    looks = [
        [Look("0", 10.0, 100.0, 0.2)],
        [Look("0", 60.0, 100.0, 0.9)],
        [Look("0", 30.0, 100.0, 1.0)],
    ]
    seen = iter(looks)

    async def look() -> list[Look]:
        return next(seen, [])

    gpus = Gpus(look, {"0": "a"}, interval=0.001)
    async with gpus.watching("a"):
        await asyncio.sleep(0.05)
    (use,) = gpus.uses()
    assert (use.memory_peak, use.memory_peak_mib) == (0.6, 60.0)
    assert use.utilisation == pytest.approx(0.7)
    assert use.arm == "a"


async def test_one_that_cannot_be_read_leaves_nothing_not_zero() -> None:
    async def fetch(url: str) -> bytes | None:
        return None

    gpus = Gpus(Dcgm("http://x/metrics", fetch).look, {}, interval=0.001)
    async with gpus.watching("a"):
        await asyncio.sleep(0.01)
    assert gpus.uses() == ()


def test_a_dcgm_page_names_gpus_by_host() -> None:
    assert read_dcgm(DCGM) == [
        Look("node1/0", 52000, 80000, 0.81),
        Look("node1/1", None, None, 0.03),
    ]


def test_another_page_tells_of_no_gpu() -> None:
    assert read_dcgm("<html>no metrics</html>") == []
