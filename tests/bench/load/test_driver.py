"""Who sends when: closed and open loops, sessions, and omission that is not coordinated."""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Sequence
from itertools import pairwise
from statistics import fmean, pstdev

import msgspec
import pytest

from gateway.bench.load.client import Exchange
from gateway.bench.load.driver import Arrivals, Driver
from gateway.bench.load.speech import Speech
from gateway.bench.load.workloads import Talk, sessions
from gateway.records import Api
from tests.support.apis import DIALECTS


class FakeServer:
    """Answers each request with the frames of a chat after `delay` seconds, all at once."""

    def __init__(self, delay: float = 0.0, stall: tuple[int, float] | None = None) -> None:
        self.bodies: list[bytes] = []
        self.headers: list[bytes] = []
        self.dues: list[float] = []
        self.most = 0
        self.tasks = 0
        self._under_way = 0
        self._delay = delay
        self._stall = stall
        self._free = asyncio.Event()
        self._free.set()

    async def ask(self, body: bytes, due: float, headers: bytes, late: float) -> Exchange:
        exchange = Exchange(due, late)
        number = len(self.bodies)
        self.bodies.append(body)
        self.headers.append(headers)
        self.dues.append(due)
        self._under_way += 1
        self.most = max(self.most, self._under_way)
        self.tasks = max(self.tasks, len(asyncio.all_tasks()))
        if self._stall is not None and number == self._stall[0]:
            self._free.clear()
            asyncio.get_running_loop().call_later(self._stall[1], self._free.set)
        await self._free.wait()
        await asyncio.sleep(self._delay)
        self._under_way -= 1
        exchange.reads = [(time.monotonic(), b"".join(DIALECTS[0].frames))]
        return exchange


class Noted:
    """What the driver tells of finished requests."""

    def __init__(self) -> None:
        self.turns: list[tuple[str, int, int]] = []
        self.exchanges: list[Exchange] = []

    def done(self, talk: Talk, turn: int, characters: int, exchange: Exchange) -> None:
        self.turns.append((talk.session, turn, characters))
        self.exchanges.append(exchange)


def driver(server: FakeServer, noted: Noted, think: float = 0.0) -> Driver:
    return Driver(
        server.ask,
        Speech(Api.CHAT, "m", {}),
        noted.done,
        think=think,
        source=random.Random(1),
        clock=time.monotonic,
    )


def singles(count: int) -> list[Talk]:
    return [Talk("system", (f"question {n}",), 1) for n in range(count)]


@pytest.mark.parametrize(("users", "most"), [(4, 4), (50, 20)])
async def test_a_closed_loop_has_as_many_under_way_as_users(users: int, most: int) -> None:
    server, noted = FakeServer(0.002), Noted()
    one = driver(server, noted)
    await one.closed(one.prepared(singles(20)), users)
    assert server.most == most
    asked = [msgspec.json.decode(body)["messages"][1]["content"] for body in server.bodies]
    assert sorted(asked) == sorted(f"question {n}" for n in range(20))


async def test_users_without_a_conversation_cost_nothing() -> None:
    server, noted = FakeServer(), Noted()
    it = driver(server, noted)
    await it.closed(it.prepared(singles(3)), 10_000)
    assert len(noted.turns) == 3 and server.tasks < 10


async def test_a_stall_counts_against_those_who_were_due_in_it() -> None:
    """Twenty arrivals within 0.2 s, and a server that stands still for 0.3 s from the second on."""
    server, noted = FakeServer(stall=(1, 0.3)), Noted()
    one = driver(server, noted)
    await one.opened(one.prepared(singles(20)), Arrivals(100, burstiness=1000), None)
    late = [exchange.reads[0][0] - exchange.due for exchange in noted.exchanges]
    assert sum(delay > 0.1 for delay in late) >= 15
    assert server.most >= 19


async def test_who_waits_for_a_place_is_late_too() -> None:
    server, noted = FakeServer(0.02), Noted()
    one = driver(server, noted)
    await one.opened(one.prepared(singles(10)), Arrivals(1000), 1)
    waited, own = max((one.reads[0][0] - one.due, one.late) for one in noted.exchanges)
    assert server.most == 1
    assert waited > 0.15
    assert own < waited - 0.1, "waiting for a place is no cost of the client"


def gaps(burstiness: float, talks: Sequence[Talk], rate: float = 10.0) -> list[float]:
    times = [0.0, *Arrivals(rate, burstiness).times(talks, random.Random(7))]
    return [later - earlier for earlier, later in pairwise(times)]


@pytest.mark.parametrize(("burstiness", "variation"), [(1.0, 1.0), (0.25, 2.0), (4.0, 0.5)])
def test_arrivals_have_their_rate_and_their_burstiness(burstiness: float, variation: float) -> None:
    found = gaps(burstiness, singles(20_000))
    assert fmean(found) == pytest.approx(0.1, rel=0.05)
    assert pstdev(found) / fmean(found) == pytest.approx(variation, rel=0.05)


def test_conversations_arrive_as_much_more_rarely_as_they_have_turns() -> None:
    talks = [Talk("", ("a", "b", "c", "d"), 1)] * 5000
    assert fmean(gaps(1.0, talks)) == pytest.approx(0.4, rel=0.05)


async def test_a_session_grows_by_question_and_real_answer() -> None:
    server, noted = FakeServer(), Noted()
    one = driver(server, noted)
    talks = sessions(5, 1, 3, turns=3, prefix=40, question=20).talks(1)
    await one.closed(one.prepared(talks), 1)
    bodies = [msgspec.json.decode(body)["messages"] for body in server.bodies]
    assert [len(body) for body in bodies] == [2, 4, 6, 2, 4]
    assert [message["role"] for message in bodies[2]] == [
        "system",
        *["user", "assistant"] * 2,
        "user",
    ]
    assert bodies[2][:4] == bodies[1]
    assert bodies[1][2] == {"role": "assistant", "content": "ab"}
    assert server.headers[0] == server.headers[2] == b"x-session-id: bench-3-1-0\r\n"
    assert server.headers[3] == b"x-session-id: bench-3-1-1\r\n"
    assert [turn for _, turn, _ in noted.turns] == [0, 1, 2, 0, 1]


async def test_users_think_between_turns_and_that_is_no_latency() -> None:
    server, noted = FakeServer(), Noted()
    one = driver(server, noted, think=0.05)
    began = time.monotonic()
    await one.closed(one.prepared([Talk("", ("a", "b", "c", "d", "e"), 1, "s")]), 1)
    assert time.monotonic() - began > 0.04
    assert max(exchange.reads[0][0] - exchange.due for exchange in noted.exchanges) < 0.03


async def test_the_characters_of_all_that_was_sent_are_told() -> None:
    server, noted = FakeServer(), Noted()
    one = driver(server, noted)
    await one.closed(one.prepared([Talk("abc", ("1234", "56"), 1, "s")]), 1)
    assert [characters for _, _, characters in noted.turns] == [7, 3 + 4 + 2 + 2]
