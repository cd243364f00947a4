"""How engines run, by their page of metrics and their server info: caches and token budget."""

from __future__ import annotations

import asyncio
import logging
from typing import Any

import httpx
import pytest

from gateway.settings import BackendSettings
from tests.engines.bench import Bench, telling

PAGE = """\
vllm:cache_config_info{block_size="16",num_gpu_blocks="100",enable_prefix_caching="True"} 1.0
vllm:time_to_first_token_seconds_sum 1.0
vllm:time_to_first_token_seconds_count 10
"""
INFO = {"vllm_config": {"scheduler_config": {"max_num_batched_tokens": 512, "max_num_seqs": 128}}}


async def test_the_token_budget_may_take_its_time() -> None:
    """vLLM looks at the whole machine for its first answer."""

    async def answer(request: httpx.Request) -> httpx.Response:
        if request.url.path == "/p/server_info":
            await asyncio.sleep(0.3)
            return httpx.Response(200, json=INFO)
        return await telling()(request)

    bench = Bench(answer, timeout=0.1)
    async with bench.engines:
        facts = await bench.probe()
    assert facts is not None and facts.max_num_batched_tokens == 512


class Engine:
    """An engine that tells its caches and, in development mode, its token budget."""

    def __init__(self, info: Any = INFO) -> None:
        self.page, self.info = PAGE, info

    async def __call__(self, request: httpx.Request) -> httpx.Response:
        if request.url.path == "/p/metrics":
            return httpx.Response(200, text=self.page)
        if request.url.path == "/p/server_info":
            return (
                self.info
                if isinstance(self.info, httpx.Response)
                else httpx.Response(200, json=self.info)
            )
        return await telling()(request)


@pytest.mark.parametrize(
    ("info", "budget"),
    [
        (INFO, 512),
        ({"vllm_config": "VllmConfig(…)"}, None),
        ({"vllm_config": {"scheduler_config": {"max_num_batched_tokens": "many"}}}, None),
        ({"vllm_config": {}}, None),
        (httpx.Response(404), None),
        (httpx.Response(500), None),
    ],
)
async def test_what_runs_is_learnt_from_its_page_and_its_server_info(
    info: Any, budget: int | None
) -> None:
    bench = Bench(Engine(info))
    async with bench.engines:
        facts = await bench.probe()
    assert facts is not None
    assert (facts.block_size, facts.cache_tokens, facts.prefix_caching) == (16, 1600, True)
    assert (facts.max_num_batched_tokens, facts.version) == (budget, "0.32.0")


async def test_an_engine_that_runs_otherwise_than_declared_is_told_once(
    caplog: pytest.LogCaptureFixture,
) -> None:
    bench = Bench(Engine())
    bench.backend.settings = BackendSettings.model_validate(
        {"url": "http://h:1/p", "engine": {"max_num_batched_tokens": 2048, "block_size": 16}}
    )
    async with bench.engines:
        for _ in range(2):
            bench.backend.probe_failures = 1
            await bench.probe()
    (record,) = [one for one in caplog.records if one.levelno == logging.WARNING]
    assert record.message == (
        "backend x is not as declared: "
        "max_num_batched_tokens is declared as 2048, the engine runs 512"
    )


async def test_a_restart_between_two_probes_is_noticed_by_its_counters() -> None:
    engine = Engine()
    bench = Bench(engine)
    bench.engines._work._interval = 0.0
    async with bench.engines:
        await bench.probe()
        await bench.probe()
        engine.page = PAGE.replace("count 10", "count 1").replace('"16"', '"32"')
        await bench.probe()
        facts = await bench.probe()
    assert facts is not None and facts.block_size == 32


async def test_a_slow_budget_holds_up_no_other_fact() -> None:
    """vLLM looks at the whole machine before it first tells its scheduler's settings."""
    looked = asyncio.Event()

    async def answer(request: httpx.Request) -> httpx.Response:
        if request.url.path == "/p/server_info":
            await looked.wait()
        return await Engine()(request)

    bench = Bench(answer)
    async with bench.engines:
        bench.engines.healthy(bench.backend)
        async with asyncio.timeout(5):
            while bench.backend.facts is None:
                await asyncio.sleep(0.001)
        facts = bench.backend.facts
        assert (facts.block_size, facts.max_num_batched_tokens) == (16, None)
        looked.set()
        later = await bench.probe()
    assert later is not None and (later.block_size, later.max_num_batched_tokens) == (16, 512)
