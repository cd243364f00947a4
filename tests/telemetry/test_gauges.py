"""Gauges: what the routing table holds at the moment of a scrape."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

from gateway.records import EngineFacts, Record
from gateway.telemetry.metrics import Metrics
from tests.telemetry.conftest import SERVED

Read = Callable[..., float | None]
Scrape = Callable[[Metrics], Awaitable[Read]]
Streamed = Callable[..., Record]


async def test_gauges_tell_the_table_at_the_scrape(
    metrics: Metrics, table: Any, scrape: Scrape
) -> None:
    table.backends["vllm-a"].outstanding = 7
    table.backends["vllm-b"].up = False
    table.routes["llama"].weights = {"chunk-512": 90.0, "chunk-64": 10.0}
    read = await scrape(metrics)
    assert read("gateway_requests_in_flight", backend="vllm-a") == 7
    assert read("gateway_requests_in_flight", backend="vllm-b") == 0
    assert read("gateway_backend_up", backend="vllm-a") == 1
    assert read("gateway_backend_up", backend="vllm-b") == 0
    assert read("gateway_arm_weight", model="llama", arm="chunk-64") == 10
    info = {
        "max_num_batched_tokens": "512",
        "block_size": "16",
        "prefix_caching": "true",
        "engine_version": "0.32.0",
    }
    assert read("gateway_backend_info", **SERVED, **info) == 1


async def test_a_removed_backends_gauges_vanish(
    metrics: Metrics, table: Any, streamed: Streamed, scrape: Scrape
) -> None:
    metrics.observe(streamed())
    del table.backends["vllm-a"], table.routes["llama"].weights["chunk-512"]
    metrics.use(table, [])
    metrics.observe(streamed())
    read = await scrape(metrics)
    assert read("gateway_backend_up", backend="vllm-a") is None
    assert read("gateway_requests_in_flight", backend="vllm-a") is None
    assert read("gateway_arm_weight", model="llama", arm="chunk-512") is None
    assert read("gateway_backend_up", backend="vllm-b") == 1
    # What it served stays counted, the request that ended after the reload included.
    assert read("gateway_requests_total", **SERVED, api="chat", outcome="ok") == 2


async def test_a_backend_without_engine_facts_has_empty_ones(
    metrics: Metrics, table: Any, scrape: Scrape
) -> None:
    backend = table.backends["vllm-c"]
    backend.settings = backend.settings.model_copy(update={"engine": None})
    backend.facts = None
    read = await scrape(metrics)
    labels = {"model": "qwen", "arm": "only", "backend": "vllm-c"}
    facts = ("max_num_batched_tokens", "block_size", "prefix_caching", "engine_version")
    assert read("gateway_backend_info", **labels, **dict.fromkeys(facts, "")) == 1


async def test_what_an_engine_tells_goes_before_what_is_declared(
    metrics: Metrics, table: Any, scrape: Scrape
) -> None:
    told = EngineFacts("0.32.0", max_num_batched_tokens=2048, prefix_caching=False)
    table.backends["vllm-a"].facts = told
    read = await scrape(metrics)
    info = {"max_num_batched_tokens": "2048", "block_size": "16", "prefix_caching": "false"}
    assert read("gateway_backend_info", **SERVED, **info, engine_version="0.32.0") == 1
