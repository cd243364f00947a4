"""What is looked at, and what is said of the rest."""

from __future__ import annotations

import sys
from types import ModuleType

import pytest

from gateway.bench.watch.engines import Engine
from gateway.bench.watch.watches import Watched, watching
from tests.bench.watch.test_gpus import DCGM, FakeNvml
from tests.simulator.running import serving
from tests.support.ports import nobody
from tests.support.scripted import reply, scripted
from tests.support.site import silent, until


def watched(*engines: Engine, exporters: tuple[str, ...] = ()) -> Watched:
    return Watched(engines=engines, exporters=exporters, gpu_arms={"0": "a"})


@pytest.fixture(autouse=True)
def nvml(monkeypatch: pytest.MonkeyPatch) -> FakeNvml:
    fake = FakeNvml()
    monkeypatch.setitem(sys.modules, "pynvml", fake)
    return fake


async def test_the_gpus_of_this_machine_are_looked_at_and_left_again(nvml: FakeNvml) -> None:
    async with watching(watched()) as found:
        (gpus,) = found.gpus
        async with gpus.watching("a"):
            pass
        assert found.said == () and found.engines is None
        assert not nvml.closed
    assert nvml.closed


async def test_without_the_package_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    absent: ModuleType | None = None
    monkeypatch.setitem(sys.modules, "pynvml", absent)
    async with watching(watched()) as found:
        assert found.gpus == ()
        assert "pip install '.[bench]'" in found.said[0]


async def test_without_a_driver_the_exporter_is_named(nvml: FakeNvml) -> None:
    nvml.driver = False
    async with watching(watched()) as found:
        assert found.gpus == ()
        assert "NVML Shared Library Not Found" in found.said[0] and "--dcgm" in found.said[0]


async def test_a_simulated_engine_says_so() -> None:
    async with (
        serving() as engine,
        watching(watched(Engine("x", engine.url, "a"))) as found,
    ):
        assert found.simulated and found.said == ()
        assert found.engines is not None
        async with found.engines.watching("a"):
            pass
        (use,) = found.engines.uses()
    assert use.kv_usage_peak == 0 and use.absent == ""


async def test_an_exporter_is_read_and_one_that_is_none_is_said() -> None:
    page = reply(DCGM.encode(), headers="content-type: text/plain\r\nconnection: close\r\n")
    async with scripted(silent, {"/metrics": page}) as exporter:
        with nobody() as url:
            async with watching(watched(exporters=(f"{exporter.url}/metrics", url))) as found:
                assert found.said == (
                    f"GPUs of {url} were not looked at: no dcgm-exporter answers there.",
                )
                async with found.gpus[0].watching("a"):
                    await until(found.gpus[0].uses)
                names = [use.name for use in found.gpus[0].uses()]
    assert names == ["node1/0", "node1/1"]
