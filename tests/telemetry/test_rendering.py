"""The page of `/metrics` as a whole."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from types import SimpleNamespace
from typing import Any

from prometheus_client import CollectorRegistry, Counter

from gateway.records import Record
from gateway.telemetry.metrics import Metrics

Read = Callable[..., float | None]
Scrape = Callable[[Metrics], Awaitable[Read]]
Streamed = Callable[..., Record]


async def test_other_rooms_metrics_come_along(table: Any, scrape: Scrape) -> None:
    registry = CollectorRegistry()
    Counter("gateway_reloads", "Reloads.", registry=registry).inc(2)
    metrics = Metrics(registry)
    metrics.use(table, [])
    assert (await scrape(metrics))("gateway_reloads_total") == 2


async def test_a_scrape_of_a_full_registry_lets_the_loop_turn(
    metrics: Metrics, table: Any, streamed: Streamed
) -> None:
    """Open streams wait for a slice at most, whose length is bounded; 0.2 ms measured."""
    backend = table.backends["vllm-a"]
    for number in range(100):
        name = f"vllm-{number}"
        table.backends[name] = SimpleNamespace(**{**vars(backend), "name": name})
    metrics.use(table, [])
    for name in table.backends:
        metrics.observe(streamed(backend=name))
    turns = 0

    async def count() -> None:
        nonlocal turns
        while True:
            turns += 1
            await asyncio.sleep(0)

    counter = asyncio.create_task(count())
    slices = [part async for part in metrics.render()]
    counter.cancel()
    assert sum(map(len, slices)) > 3_000_000
    assert max(map(len, slices)) < 100_000
    assert turns >= len(slices) - 2


async def test_it_renders_before_there_is_a_table(scrape: Scrape) -> None:
    read = await scrape(Metrics(CollectorRegistry()))
    assert read("gateway_backend_up", backend="vllm-a") is None
