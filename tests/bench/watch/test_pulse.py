"""The probe that measures how late time stamps are."""

from __future__ import annotations

import asyncio
import time
from statistics import median

from gateway.bench.watch.pulse import Pulse


async def test_an_idle_loop_stamps_soon() -> None:
    async with Pulse(time.monotonic) as pulse:
        began = time.monotonic()
        await asyncio.sleep(0.5)
        delays = pulse.delays(began)
    assert len(delays) > 10
    assert all(delay > 0 for delay in delays)
    assert median(delays) < 0.01


async def test_no_pulse_is_stamped_before_it_was_written() -> None:
    """The writer goes on while the reader has no core."""

    def held_up() -> float:
        now = time.monotonic()
        time.sleep(0.03)
        return now

    async with Pulse(held_up) as pulse:
        began = time.monotonic()
        await asyncio.sleep(0.5)
        assert min(pulse.delays(began)) > 0


async def test_a_loop_that_is_held_up_stamps_late() -> None:
    async with Pulse(time.monotonic) as pulse:
        await asyncio.sleep(0.3)
        began = time.monotonic()
        for _ in range(5):
            time.sleep(0.05)  # what a client does that reads replies between two stamps
            await asyncio.sleep(0)
        await asyncio.sleep(0.01)
        delays = pulse.delays(began)
    assert len(delays) >= 5
    assert median(delays) > 0.01


async def test_what_was_late_before_a_round_is_not_the_rounds() -> None:
    async with Pulse(time.monotonic) as pulse:
        await asyncio.sleep(0.3)
        time.sleep(0.2)  # what reading the last round's replies takes
        began = time.monotonic()
        await asyncio.sleep(0.2)
        assert max(pulse.delays(0.0)) > 0.1
        assert max(pulse.delays(began)) < 0.1


async def test_its_process_ends_with_it() -> None:
    async with Pulse(time.monotonic) as pulse:
        process = pulse._process
    assert process is not None and process.poll() is not None
