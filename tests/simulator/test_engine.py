from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator
from typing import Any

import pytest

from gateway.simulator import answer, tokenizer
from gateway.simulator.config import EngineConfig
from gateway.simulator.engine import Engine
from gateway.simulator.sequence import Sequence
from tests.simulator.loads import article_load, percentile, sequence, served


@contextlib.asynccontextmanager
async def running(**config: Any) -> AsyncIterator[Engine]:
    engine = Engine(EngineConfig(**config))
    task = asyncio.create_task(engine.run())
    await asyncio.sleep(0)
    yield engine
    task.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await task


async def test_tokens_come_one_by_one_and_end_with_nothing() -> None:
    async with running(speed=50) as engine:
        generation = engine.submit(sequence(20, 3))
        found = [(await generation.tokens()).tolist() for _ in range(4)]
    assert found == [[token] for token in answer.TOKENS[:3]] + [[]]
    assert generation.sequence.finish_reason == "length"


@pytest.mark.parametrize(("speed", "seconds"), [(1, 0.34), (4, 0.085)])
async def test_steps_take_their_simulated_time(speed: float, seconds: float) -> None:
    async with running(speed=speed) as engine:
        start = time.monotonic()
        await engine.submit(sequence(20, 40)).all_tokens()
        taken = time.monotonic() - start
    # 40 steps of 8.5 ms and a little for their tokens; timers alone would add up to 40 ms.
    assert seconds < taken + 0.005 < seconds * 1.3 + 0.02


async def test_requests_share_steps() -> None:
    async with running(speed=4) as engine:
        start = time.monotonic()
        generations = [engine.submit(sequence(20, 40, name=name)) for name in range(8)]
        await asyncio.gather(*(one.all_tokens() for one in generations))
        taken = time.monotonic() - start
    assert taken < 0.085 * 2.5


async def test_aborting_ends_it_at_once_and_frees_everything() -> None:
    async with running(speed=0.01) as engine:
        generation = engine.submit(sequence(20, 5))
        waiting = asyncio.create_task(generation.tokens())
        await asyncio.sleep(0.01)
        assert (len(engine.scheduler.running), engine.scheduler.cache.used_blocks) == (1, 2)
        engine.abort(generation)
        engine.abort(generation)
        assert (engine.scheduler.running, engine.scheduler.cache.used_blocks) == ([], 0)
        assert not await waiting
    assert generation.sequence.finish_reason == "abort"
    assert engine.metrics.finished == {"abort": 1, "stop": 0, "length": 0}


async def test_the_rest_goes_on_when_one_is_aborted() -> None:
    async with running(speed=20) as engine:
        staying, leaving = engine.submit(sequence(20, 9)), engine.submit(sequence(20, 9, name=1))
        await leaving.tokens()
        engine.abort(leaving)
        assert len(await staying.all_tokens()) == 9


async def test_a_stopped_engine_leaves_nobody_waiting() -> None:
    async with running(speed=0.01) as engine:
        assert engine.alive
        waiting = asyncio.create_task(engine.submit(sequence(20, 5)).tokens())
        await asyncio.sleep(0)
    assert not engine.alive
    assert not await waiting


async def test_an_engine_that_dies_says_so_and_leaves_nobody_waiting(
    caplog: pytest.LogCaptureFixture,
) -> None:
    engine = Engine(EngineConfig())
    task = asyncio.create_task(engine.run())
    await asyncio.sleep(0)
    generation = engine.submit(sequence(20, 5))
    # A block nobody has: what a fault of the scheduler might leave behind.
    generation.sequence.table.blocks.append(-(10**9))
    with pytest.raises(IndexError):
        await task
    assert not engine.alive
    assert not await generation.tokens()
    assert "the simulated engine died" in caplog.text


async def test_what_is_counted() -> None:
    async with running(speed=10) as engine:
        for name in range(2):
            await engine.submit(sequence(10, 4, shared=64, name=name)).all_tokens()
    metrics = engine.metrics
    assert (metrics.prompt_tokens, metrics.cached_tokens, metrics.generated_tokens) == (148, 64, 8)
    counts = {name: found.cumulative()[-1][1] for name, found in metrics.histograms.items()}
    assert counts == {
        "time_to_first_token_seconds": 2,
        "inter_token_latency_seconds": 6,
        "request_time_per_output_token_seconds": 2,
        "e2e_request_latency_seconds": 2,
        "request_queue_time_seconds": 2,
        "request_prefill_time_seconds": 2,
        "request_decode_time_seconds": 2,
    }
    parts = metrics.queue.total + metrics.prefill.total
    assert metrics.ttft.total == pytest.approx(parts)
    assert metrics.duration.total == pytest.approx(parts + metrics.decode.total)
    assert metrics.decode.total == pytest.approx(metrics.inter_token.total)


def test_an_answer_is_text() -> None:
    assert tokenizer.decode(answer.TOKENS) == answer.TEXT


@pytest.mark.parametrize("chunk", [64, 512])
async def test_real_time_agrees_with_virtual_time(chunk: int) -> None:
    """The article's load against the engine itself, without HTTP."""
    speed = 2.0
    places = asyncio.Semaphore(32)
    times: list[float] = []
    async with running(speed=speed, max_num_batched_tokens=chunk, max_num_seqs=64) as engine:

        async def ask(one: Sequence) -> None:
            async with places:
                generation = engine.submit(one)
                await generation.all_tokens()
                assert generation.first is not None
                times.append((generation.first - generation.submitted) * speed * 1000)

        await asyncio.gather(*(ask(one) for one in article_load()))
    virtual = served("h100-llama-70b", chunk, article_load(), 32)
    # Of the tail one pause of this machine would make another figure.
    assert sorted(times)[99] == pytest.approx(percentile(virtual, 50), rel=0.25)
