from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest

from gateway.simulator import answer, tokenizer
from gateway.simulator.config import EngineConfig
from gateway.simulator.engine import CATCH_UP, Engine
from gateway.simulator.sequence import Sequence
from tests.simulator.loads import article_load, percentile, sequence, served
from tests.support import virtual_time


@contextlib.asynccontextmanager
async def running(
    clock: Callable[[], float] = time.monotonic, **config: Any
) -> AsyncIterator[Engine]:
    engine = Engine(EngineConfig(**config), clock)
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


@pytest.mark.parametrize("speed", [1, 4])
def test_steps_take_their_simulated_time(speed: float) -> None:
    async def main(clock: Callable[[], float]) -> float:
        async with running(clock, speed=speed) as engine:
            await engine.submit(sequence(20, 40)).all_tokens()
        return clock()

    # 40 steps of 9 ms and a little for their tokens.
    assert virtual_time.run(main) * speed == pytest.approx(0.365, abs=0.002)


def test_requests_share_steps() -> None:
    async def main(clock: Callable[[], float]) -> float:
        async with running(clock) as engine:
            generations = [engine.submit(sequence(20, 40, name=name)) for name in range(8)]
            await asyncio.gather(*(one.all_tokens() for one in generations))
        return clock()

    assert 0.365 < virtual_time.run(main) < 0.4


async def test_time_passes_as_the_clock_on_the_wall() -> None:
    """Timers that fire late do not add up; only what the machine lacks does."""
    async with running(speed=4) as engine:
        start = time.monotonic()
        await engine.submit(sequence(20, 400)).all_tokens()
        taken = time.monotonic() - start
    assert taken > 0.9 - CATCH_UP


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
def test_the_engine_agrees_with_its_scheduler_alone(chunk: int) -> None:
    """The article's load against the engine itself, without HTTP and on a clock of its own."""
    speed = 2.0

    async def main(clock: Callable[[], float]) -> list[float]:
        places = asyncio.Semaphore(32)
        times: list[float] = []

        async def ask(one: Sequence) -> None:
            async with places:
                generation = engine.submit(one)
                await generation.all_tokens()
                assert generation.first is not None
                times.append((generation.first - generation.submitted) * speed * 1000)

        config = {"speed": speed, "max_num_batched_tokens": chunk, "max_num_seqs": 64}
        async with running(clock, **config) as engine:
            await asyncio.gather(*(ask(one) for one in article_load()))
        return sorted(times)

    times = virtual_time.run(main)
    # Who takes a place that became free finds the next step begun.
    alone = served("h100-llama-70b", chunk, article_load(), 32, pause=1e-6)
    for percent in (50, 90, 99):
        assert times[percent * 2 - 1] == pytest.approx(percentile(alone, percent), rel=0.001)
