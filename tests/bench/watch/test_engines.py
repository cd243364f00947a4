"""What engines say during a round, from pages of vLLM's."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from gateway.bench.results import EngineUse
from gateway.bench.watch.engines import Engine, Engines
from gateway.vllm.page import EnginePage, read_page

INTERVAL = 0.01


def page(queries: float, hits: float, usage: float, *, finished: int = 0) -> bytes:
    return (
        f'vllm:prefix_cache_queries_total{{engine="0"}} {queries}\n'
        f'vllm:prefix_cache_hits_total{{engine="0"}} {hits}\n'
        f'vllm:kv_cache_usage_perc{{engine="0"}} {usage}\n'
        f'vllm:num_preemptions_total{{engine="0"}} 3\n'
        f'vllm:request_success_total{{finished_reason="stop"}} {finished}\n'
    ).encode()


class FakeEngines:
    """Answers each URL with its pages in order, the last one again and again."""

    def __init__(self, **pages: list[bytes | None]) -> None:
        self.asked: list[str] = []
        self._pages = pages

    async def fetch(self, url: str) -> bytes | None:
        self.asked.append(url)
        pages = self._pages[url.removeprefix("http://").partition("/")[0]]
        return pages.pop(0) if len(pages) > 1 else pages[0]


async def watch(
    fake: FakeEngines, *engines: Engine, arm: str = "a", round_takes: float = 0.0
) -> tuple[EngineUse, ...]:
    watching = Engines(engines, fake.fetch, INTERVAL)
    async with watching.watching(arm):
        await asyncio.sleep(round_takes)
    return watching.uses()


async def test_the_hit_rate_is_that_of_the_round_not_since_the_start() -> None:
    fake = FakeEngines(x=[page(1000, 0, 0), page(1400, 360, 0, finished=20)])
    (use,) = await watch(fake, Engine("x", "http://x", "a"))
    assert use.hit_rate == 0.9
    assert use.requests == 20 and use.preemptions == 0
    assert use.absent == ""


async def test_the_highest_kv_usage_between_the_ends_counts() -> None:
    pages: list[bytes | None] = [page(0, 0, 0.1), page(0, 0, 0.6), page(0, 0, 0.3)]
    (use,) = await watch(FakeEngines(x=pages), Engine("x", "http://x"), round_takes=8 * INTERVAL)
    assert use.kv_usage_peak == 0.6


async def test_nothing_looked_up_is_no_hit_rate_of_zero() -> None:
    (use,) = await watch(FakeEngines(x=[page(5, 5, 0)]), Engine("x", "http://x"))
    assert use.hit_rate is None


async def test_an_engine_that_began_anew_in_between_tells_nothing_of_the_round() -> None:
    fake = FakeEngines(x=[page(1000, 900, 0), page(10, 9, 0)])
    (use,) = await watch(fake, Engine("x", "http://x"))
    assert use.hit_rate is None


async def test_an_old_engine_states_the_rate_itself() -> None:
    old = b"vllm:gpu_prefix_cache_hit_rate 0.52\nvllm:gpu_cache_usage_perc 0.46\n"
    (use,) = await watch(FakeEngines(x=[old]), Engine("x", "http://x"))
    assert (use.hit_rate, use.kv_usage_peak) == (0.52, 0.46)
    assert use.preemptions is None


async def test_who_does_not_answer_is_absent_and_the_rest_goes_on() -> None:
    fake = FakeEngines(x=[None], y=[b"<html>"], z=[page(0, 0, 0.5)])
    engines = [Engine(name, f"http://{name}") for name in "xyz"]
    x, y, z = await watch(fake, *engines)
    assert x.absent == "its /metrics could not be read" and x.kv_usage_peak is None
    assert y.absent == "its /metrics is no vLLM engine's"
    assert z.absent == "" and z.kv_usage_peak == 0.5


async def test_only_the_engines_of_the_arm_are_asked() -> None:
    fake = FakeEngines(x=[page(0, 0, 0)], y=[page(0, 0, 0)])
    uses = await watch(fake, Engine("x", "http://x", "a"), Engine("y", "http://y", "b"))
    assert [use.name for use in uses] == ["x"]
    assert set(fake.asked) == {"http://x/metrics"}


async def test_no_page_is_read_while_the_round_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    fake = FakeEngines(x=[page(0, 0, 0.2)])
    reads: list[str] = []

    def noted(text: str) -> EnginePage | None:
        reads.append(text)
        return read_page(text)

    monkeypatch.setattr("gateway.bench.watch.engines.read_page", noted)
    watching = Engines([Engine("x", "http://x")], fake.fetch, INTERVAL)
    async with watching.watching("a"):
        await asyncio.sleep(5 * INTERVAL)
        assert len(fake.asked) > 1 and not reads
    assert watching.uses()[0].kv_usage_peak == 0.2
    assert reads


_: Callable[[str], Awaitable[bytes | None]] = FakeEngines().fetch
