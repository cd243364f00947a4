"""What a simulated engine tells of itself and of its times, through a running gateway."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from gateway.engines.http import EngineHttp
from gateway.engines.work import EngineWork
from gateway.routing.backend import Backend
from gateway.upstream.clients import Clients
from tests.simulator.running import serving
from tests.support.running import ADMIN_KEY, Running, configuration, running


async def learnt(it: Running) -> Backend:
    """The backend once its engine has told everything; its token budget comes last."""
    backend = it.gateway.context.table.backends["b0"]
    async with asyncio.timeout(5):
        while backend.facts is None or backend.facts.max_num_batched_tokens is None:
            await asyncio.sleep(0.01)
    return backend


async def ask(it: Running, text: str, stream: bool = True) -> None:
    body = {"model": "m", "stream": stream, "max_tokens": 2}
    messages = [{"role": "user", "content": text}]
    reply = await it.client.post("/v1/chat/completions", json={**body, "messages": messages})
    assert reply.status_code == 200, reply.text


async def test_the_chunk_settings_that_run_are_shown(tmp_path: Path) -> None:
    async with (
        serving(max_num_batched_tokens=512, max_num_seqs=64, block_size=32) as engine,
        running(configuration(tmp_path, engine.url), tmp_path) as it,
    ):
        await learnt(it)
        headers = {"authorization": f"Bearer {ADMIN_KEY}"}
        (shown,) = (await it.client.get("/admin/v1/backends", headers=headers)).json()
        running_now = shown["running"]
        assert running_now["max_num_batched_tokens"] == 512
        assert (running_now["max_num_seqs"], running_now["block_size"]) == (64, 32)
        assert running_now["cache_tokens"] == engine.engine.scheduler.cache.num_blocks * 32


async def test_a_time_to_first_token_is_taken_apart(tmp_path: Path) -> None:
    """The engine is slow enough that its own part is most of it; the parts add up exactly."""
    async with (
        serving(speed=1.0) as engine,
        running(configuration(tmp_path, engine.url), tmp_path) as it,
    ):
        backend = await learnt(it)
        clients = Clients()
        work = EngineWork(EngineHttp(clients), it.gateway.metrics.own)
        await work.scrape(backend)
        await asyncio.gather(*(ask(it, f"{n} " + "word " * 400) for n in range(8)))
        await work.scrape(backend)
        await clients.aclose()
    parts = backend.ttft_parts
    assert parts is not None and parts.comparable
    assert (parts.requests, parts.engine_requests) == (8, 8)
    engine_queue, prefill = parts.engine_queue_ms, parts.engine_prefill_ms
    assert engine_queue is not None and prefill is not None
    own, rest = parts.gateway_ms + parts.network_ms, parts.engine_other_ms
    assert own + engine_queue + prefill + rest == pytest.approx(parts.total_ms, abs=0.01)
    assert prefill > 0.5 * parts.total_ms
    assert parts.gateway_ms > 0


async def test_unstreamed_requests_make_the_two_clocks_incomparable(tmp_path: Path) -> None:
    async with serving() as engine, running(configuration(tmp_path, engine.url), tmp_path) as it:
        backend = await learnt(it)
        clients = Clients()
        work = EngineWork(EngineHttp(clients), it.gateway.metrics.own)
        await work.scrape(backend)
        for stream in (True, False, False, False):
            await ask(it, "word", stream)
        await work.scrape(backend)
        await clients.aclose()
    parts = backend.ttft_parts
    assert parts is not None and not parts.comparable
    assert (parts.requests, parts.engine_requests) == (1, 4)
