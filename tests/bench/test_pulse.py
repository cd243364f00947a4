"""The probe that measures how late time stamps are."""

from __future__ import annotations

import asyncio
import time
from statistics import median

from gateway.bench.pulse import Pulse


async def test_an_idle_loop_stamps_soon() -> None:
    async with Pulse(time.monotonic) as pulse:
        await asyncio.sleep(0.5)
        delays = pulse.take()
    assert len(delays) > 10
    assert all(delay > 0 for delay in delays)
    assert median(delays) < 0.01


async def test_a_loop_that_is_held_up_stamps_late() -> None:
    async with Pulse(time.monotonic) as pulse:
        await asyncio.sleep(0.3)
        pulse.take()
        for _ in range(5):
            time.sleep(0.05)  # what a client does that reads replies between two stamps
            await asyncio.sleep(0)
        await asyncio.sleep(0.01)
        delays = pulse.take()
    assert len(delays) >= 5
    assert median(delays) > 0.01


async def test_nothing_is_taken_twice() -> None:
    async with Pulse(time.monotonic) as pulse:
        await asyncio.sleep(0.3)
        assert pulse.take()
        assert pulse.take() == []


async def test_its_process_ends_with_it() -> None:
    async with Pulse(time.monotonic) as pulse:
        process = pulse._process
    assert process is not None and process.poll() is not None
