"""Who waits, who goes next, and that no place is ever lost."""

from __future__ import annotations

import asyncio

import pytest

from gateway.admission.gate import Gate
from gateway.errors import NoBackend, Overloaded
from gateway.records import Refusal
from gateway.routing.backend import Backend
from tests.admission.conftest import Clock, MakeBackend, Wish


@pytest.fixture
def one(make_backend: MakeBackend) -> Backend:
    return make_backend("one", 1)


@pytest.fixture
def two(make_backend: MakeBackend) -> Backend:
    return make_backend("two", 1)


@pytest.fixture
def gate(clock: Clock) -> Gate:
    return Gate(queue_limit=100, queue_timeout=30.0, clock=clock)


async def settle() -> None:
    for _ in range(3):
        await asyncio.sleep(0)


async def waiting(gate: Gate, wish: Wish, lane: str = "lane") -> asyncio.Task[Backend]:
    """A task that has joined the queue."""
    before = gate.depth
    task = asyncio.create_task(gate.enter(wish.pick, wish.why_not, lane))
    await settle()
    assert gate.depth == before + 1
    return task


async def stop(*tasks: asyncio.Task[Backend]) -> None:
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


async def test_a_free_place_is_taken_without_waiting(gate: Gate, one: Backend) -> None:
    wish = Wish(one)
    assert gate.try_enter(wish.pick) is one
    assert one.outstanding == 1
    assert gate.try_enter(wish.pick) is None
    gate.leave(one)
    assert await gate.enter(wish.pick, wish.why_not, "lane") is one
    assert gate.depth == 0


async def test_first_come_first_served(gate: Gate, one: Backend) -> None:
    wish = Wish(one)
    gate.try_enter(wish.pick)
    tasks = [await waiting(gate, wish) for _ in range(4)]
    assert gate.depth == 4
    for position, task in enumerate(tasks):
        gate.leave(one)
        await settle()
        assert task.done()
        assert not any(later.done() for later in tasks[position + 1 :])
        assert gate.depth == 3 - position
    gate.leave(one)
    assert one.outstanding == 0


async def test_a_newcomer_does_not_overtake_those_who_wait(gate: Gate, one: Backend) -> None:
    wish = Wish(one)
    gate.try_enter(wish.pick)
    first = await waiting(gate, wish)
    one.release()  # a place that became free without anybody saying so
    assert gate.try_enter(wish.pick) is None
    assert await first is one


async def test_a_newcomer_takes_what_those_who_wait_cannot_use(
    gate: Gate, one: Backend, two: Backend
) -> None:
    gate.try_enter(Wish(one).pick)
    first = await waiting(gate, Wish(one), "one")
    assert gate.try_enter(Wish(two).pick) is two
    assert not first.done()
    await stop(first)


async def test_lanes_do_not_block_each_other(gate: Gate, one: Backend, two: Backend) -> None:
    gate.try_enter(Wish(one).pick)
    gate.try_enter(Wish(two).pick)
    stuck = [await waiting(gate, Wish(one), "one") for _ in range(3)]
    behind = await waiting(gate, Wish(two), "two")
    gate.leave(two)
    assert await behind is two
    assert gate.depth == 3
    await stop(*stuck)


async def test_across_lanes_the_one_that_came_first_goes_first(gate: Gate, one: Backend) -> None:
    gate.try_enter(Wish(one).pick)
    tasks = [await waiting(gate, Wish(one), lane) for lane in ("x", "y", "x", "z", "y")]
    for task in tasks:
        gate.leave(one)
        assert await task is one
    gate.leave(one)


async def test_one_answers_for_its_whole_lane(gate: Gate, one: Backend, two: Backend) -> None:
    """A place that a thousand waiters cannot use must not cost a thousand questions."""
    gate.try_enter(Wish(one).pick)
    wish = Wish(one)
    stuck = [await waiting(gate, wish) for _ in range(50)]
    gate.try_enter(Wish(two).pick)
    wish.asked = 0
    gate.leave(two)
    assert wish.asked == 1
    await stop(*stuck)


async def test_nothing_that_serves_is_said_at_once(gate: Gate, one: Backend) -> None:
    one.up = False
    wish = Wish(one)
    with pytest.raises(NoBackend) as caught:
        await gate.enter(wish.pick, wish.why_not, "lane")
    assert (caught.value.message, caught.value.retry_after) == ("all are down", 5.0)
    assert gate.depth == 0


async def test_those_who_wait_learn_that_nothing_serves_any_more(gate: Gate, one: Backend) -> None:
    wish = Wish(one)
    gate.try_enter(wish.pick)
    tasks = [await waiting(gate, wish) for _ in range(3)]
    one.up = False
    gate.wake()
    for task in tasks:
        with pytest.raises(NoBackend, match="all are down"):
            await task
    assert gate.depth == 0


async def test_a_circuit_that_opens_is_noticed_when_the_failed_request_leaves(
    gate: Gate, one: Backend
) -> None:
    wish = Wish(one)
    gate.try_enter(wish.pick)
    task = await waiting(gate, wish)
    for _ in range(5):
        one.circuit.failure()
    gate.leave(one)
    with pytest.raises(NoBackend):
        await task


async def test_a_backend_that_comes_back_serves_as_many_as_it_has_places_for(
    gate: Gate, one: Backend, make_backend: MakeBackend
) -> None:
    back = make_backend("back", 3)
    back.up = False
    gate.try_enter(Wish(one).pick)
    tasks = [await waiting(gate, Wish(one, back)) for _ in range(5)]
    back.up = True
    gate.wake()
    await settle()
    assert [task.done() for task in tasks] == [True, True, True, False, False]
    assert back.outstanding == 3
    await stop(*tasks[3:])


@pytest.fixture
def back(make_backend: MakeBackend, clock: Clock) -> Backend:
    """A backend with three places, whose circuit is open and lets one request try it."""
    back = make_backend("back", 3)
    for _ in range(5):
        back.circuit.failure()
    clock.now += 5
    return back


async def test_a_trial_that_went_well_opens_its_backend_to_all_who_wait(
    gate: Gate, one: Backend, back: Backend
) -> None:
    gate.try_enter(Wish(one).pick)
    assert gate.try_enter(Wish(back).pick) is back
    tasks = [await waiting(gate, Wish(one, back)) for _ in range(5)]
    back.circuit.success()
    gate.leave(back)
    await settle()
    assert [task.done() for task in tasks] == [True, True, True, False, False]
    await stop(*tasks[3:])


async def test_who_takes_another_place_leaves_the_free_one_to_the_next(
    gate: Gate, one: Backend, back: Backend, clock: Clock
) -> None:
    back.circuit.begin()
    gate.try_enter(Wish(one).pick)
    tasks = [await waiting(gate, Wish(back, one)) for _ in range(3)]
    clock.now += 5  # nothing was heard of the trial, so another may try
    gate.leave(one)
    await settle()
    assert [task.done() for task in tasks] == [True, True, False]
    assert (tasks[0].result(), tasks[1].result()) == (back, one)
    await stop(tasks[2])


async def test_a_full_queue_refuses_and_says_when_to_try_again(
    gate: Gate, one: Backend, clock: Clock
) -> None:
    gate.queue_limit = 2
    wish = Wish(one)
    gate.try_enter(wish.pick)
    tasks = [await waiting(gate, wish) for _ in range(2)]
    clock.now += 12.0
    with pytest.raises(Overloaded) as caught:
        await gate.enter(wish.pick, wish.why_not, "lane")
    assert (caught.value.status, caught.value.refusal) == (503, Refusal.QUEUE_LIMIT)
    assert caught.value.retry_after == 12.0, "as long as the oldest has waited"
    assert "12 s" in caught.value.message
    assert gate.depth == 2
    await stop(*tasks)


async def test_without_a_queue_there_is_a_second_to_wait(gate: Gate, one: Backend) -> None:
    gate.queue_limit = 0
    wish = Wish(one)
    gate.try_enter(wish.pick)
    with pytest.raises(Overloaded) as caught:
        await gate.enter(wish.pick, wish.why_not, "lane")
    assert caught.value.retry_after == 1.0


async def test_a_wait_has_an_end(gate: Gate, one: Backend) -> None:
    gate.queue_timeout = 0.01
    wish = Wish(one)
    gate.try_enter(wish.pick)
    with pytest.raises(Overloaded, match=r"within 0\.01 s") as caught:
        await gate.enter(wish.pick, wish.why_not, "lane")
    assert caught.value.retry_after is not None
    assert caught.value.refusal is Refusal.QUEUE_TIMEOUT
    assert gate.depth == 0
    gate.leave(one)
    assert one.outstanding == 0


async def test_one_who_leaves_the_queue_is_passed_over(gate: Gate, one: Backend) -> None:
    wish = Wish(one)
    gate.try_enter(wish.pick)
    first, second, third = [await waiting(gate, wish) for _ in range(3)]
    await stop(second)
    assert gate.depth == 2
    gate.leave(one)
    assert await first is one
    gate.leave(one)
    assert await third is one


async def test_a_place_is_not_given_to_one_just_cancelled(gate: Gate, one: Backend) -> None:
    """The task has been cancelled but has not run since, so it still stands in the queue."""
    wish = Wish(one)
    gate.try_enter(wish.pick)
    first = await waiting(gate, wish)
    second = await waiting(gate, wish)
    first.cancel()
    gate.leave(one)
    assert await second is one
    assert one.outstanding == 1
    await stop(first)


async def test_a_place_given_to_one_cancelled_in_the_same_moment_passes_on(
    gate: Gate, one: Backend
) -> None:
    wish = Wish(one)
    gate.try_enter(wish.pick)
    first = await waiting(gate, wish)
    second = await waiting(gate, wish)
    gate.leave(one)  # the place is first's ...
    first.cancel()  # ... who leaves before it knows
    assert await second is one
    assert one.outstanding == 1
    with pytest.raises(asyncio.CancelledError):
        await first


async def test_a_place_given_to_one_cancelled_with_nobody_behind_is_free_again(
    gate: Gate, one: Backend
) -> None:
    wish = Wish(one)
    gate.try_enter(wish.pick)
    task = await waiting(gate, wish)
    gate.leave(one)
    await stop(task)
    assert one.outstanding == 0
    assert gate.try_enter(wish.pick) is one


async def test_cancelled_when_the_wait_ends_the_client_is_still_gone(
    gate: Gate, one: Backend
) -> None:
    wish = Wish(one)
    gate.try_enter(wish.pick)
    task = await waiting(gate, wish)
    one.up = False
    gate.wake()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert one.outstanding == 1


async def test_limits_can_change_while_some_wait(gate: Gate, one: Backend) -> None:
    wish = Wish(one)
    gate.try_enter(wish.pick)
    tasks = [await waiting(gate, wish) for _ in range(3)]
    gate.queue_limit = 1
    with pytest.raises(Overloaded):
        await gate.enter(wish.pick, wish.why_not, "lane")
    assert gate.depth == 3
    await stop(*tasks)
