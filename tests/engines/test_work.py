"""Scrapes of engines that stay up."""

from __future__ import annotations

import asyncio
import gzip
import threading
from collections.abc import Callable

import httpx
import pytest

from gateway.engines import work
from gateway.engines.http import EngineHttp
from gateway.engines.parts import Own
from gateway.engines.work import EngineWork
from gateway.records import EngineFacts
from gateway.vllm.page import EnginePage, Total, read_page
from tests.engines.fakes import FakeBackend


class Watch:
    """Backend `x`, an engine whose counters are set by hand, and a clock."""

    def __init__(self, samples: int = 3) -> None:
        self.now = 1000.0
        self.engine = self.served = (0.0, 0)
        self.answer: Callable[[], httpx.Response] = self.page
        self.backend = FakeBackend(facts=EngineFacts("0.32.0"))
        client = httpx.AsyncClient(transport=httpx.MockTransport(lambda _: self.answer()))
        http = EngineHttp(lambda _: client)
        self.work = EngineWork(
            http, self.own, interval=15.0, samples=samples, clock=lambda: self.now
        )

    def page(self) -> httpx.Response:
        seconds, count = self.engine
        name = "vllm:time_to_first_token_seconds"
        return httpx.Response(200, text=f"{name}_sum {seconds}\n{name}_count {count}\n")

    def own(self, backend: str) -> Own:
        assert backend == "x"
        return Own(Total(*self.served), Total(*self.served))

    async def scrape(self, seconds: float, count: int) -> None:
        """The engine and the gateway have counted so much by now."""
        self.engine = self.served = (seconds, count)
        self.now += 15
        await self.work.scrape(self.backend)


def test_a_scrape_is_due_once_an_interval() -> None:
    watch = Watch()
    other = FakeBackend("y")
    assert [watch.work.due(watch.backend) for _ in range(3)] == [True, False, False]
    assert watch.work.due(other)
    watch.now += 14.9
    assert not watch.work.due(watch.backend)
    watch.now += 0.1
    assert watch.work.due(watch.backend)


async def test_the_window_slides() -> None:
    watch = Watch(samples=3)
    await watch.scrape(0.0, 0)
    assert watch.backend.ttft_parts is None
    await watch.scrape(1.0, 10)
    await watch.scrape(3.0, 20)
    parts = watch.backend.ttft_parts
    assert parts and (parts.total_ms, parts.requests, parts.seconds) == (150.0, 20, 30.0)
    await watch.scrape(6.0, 30)
    parts = watch.backend.ttft_parts
    assert parts and (parts.total_ms, parts.requests) == (250.0, 20), "the first is forgotten"


async def test_an_engine_that_restarted_unnoticed_is_asked_anew() -> None:
    watch = Watch()
    await watch.scrape(1.0, 10)
    await watch.scrape(2.0, 20)
    await watch.scrape(0.5, 1)
    assert watch.backend.facts is None
    assert watch.backend.ttft_parts is None


@pytest.mark.parametrize(
    "answer",
    [
        lambda: httpx.Response(500),
        lambda: httpx.Response(404, json={"detail": "Not Found"}),
        lambda: httpx.Response(200, content=b"\xff\xfe"),
        lambda: httpx.Response(200, text="vllm:time_to_first_token_seconds_sum{ 1\n"),
    ],
)
async def test_a_page_that_cannot_be_read_changes_nothing(
    answer: Callable[[], httpx.Response],
) -> None:
    watch = Watch()
    await watch.scrape(1.0, 10)
    await watch.scrape(2.0, 20)
    parts = watch.backend.ttft_parts
    watch.answer = answer
    await watch.scrape(3.0, 30)
    assert watch.backend.ttft_parts == parts is not None


async def test_a_compressed_page_is_not_unpacked() -> None:
    watch = Watch()
    packed = gzip.compress(watch.page().content)
    watch.answer = lambda: httpx.Response(200, headers={"content-encoding": "gzip"}, content=packed)
    await watch.scrape(1.0, 10)
    watch.answer = watch.page
    await watch.scrape(2.0, 20)
    assert watch.backend.ttft_parts is None, "there is one sample only"


async def test_streams_do_not_wait_while_a_page_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    threads: list[threading.Thread] = []

    def read(text: str) -> EnginePage | None:
        threads.append(threading.current_thread())
        return read_page(text)

    monkeypatch.setattr(work, "read_page", read)
    await Watch().scrape(1.0, 10)
    assert threads and threads[0] is not threading.current_thread()


async def test_an_engine_that_hangs_is_given_up() -> None:
    async def hang(request: httpx.Request) -> httpx.Response:
        await asyncio.Event().wait()
        raise AssertionError

    client = httpx.AsyncClient(transport=httpx.MockTransport(hang))
    scraper = EngineWork(
        EngineHttp(lambda _: client), lambda _: Own(Total(0, 0), Total(0, 0)), timeout=0.05
    )
    async with asyncio.timeout(5):
        await scraper.scrape(FakeBackend())
