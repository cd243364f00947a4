"""Places at a backend: never more than it has, a queue with an end, and what a full one says."""

from __future__ import annotations

import asyncio
import time
from typing import Any

import pytest

from gateway.records import Outcome
from tests.support.apis import CHAT, RESPONSES, Dialect
from tests.support.patience import SLACK
from tests.support.scripted import Received
from tests.support.site import Site, answers, both, every_api, hangs_up, own, until

pytestmark = pytest.mark.asyncio(loop_scope="module")


class Counting:
    """Answers after a moment, and remembers how many it answered at once."""

    def __init__(self, dialect: Dialect, seconds: float = 0.05) -> None:
        self._script = answers(dialect, delay=seconds)
        self.running = 0
        self.most = 0

    async def __call__(self, request: Received, writer: asyncio.StreamWriter) -> None:
        self.running += 1
        self.most = max(self.most, self.running)
        try:
            await self._script(request, writer)
        finally:
            self.running -= 1


def narrow(at: Site, *, places: int = 1, **changes: Any) -> None:
    """Give `b0` so many places."""
    backend = {"url": at.backends[0].url, "max_concurrency": places}
    at.configure(backends={"b0": backend}, **changes)


def busy(at: Site, dialect: Dialect, number: int = 1) -> list[asyncio.Task[Any]]:
    """Requests that nobody answers."""
    return [asyncio.ensure_future(at.ask(dialect)) for _ in range(number)]


async def give_up(at: Site, requests: list[asyncio.Task[Any]]) -> None:
    for one in requests:
        one.cancel()
    await until(lambda: at.backend().outstanding == 0)


@both
async def test_a_backend_never_gets_more_than_it_has_places(at: Site, stream: bool) -> None:
    script = Counting(CHAT)
    at.play(script)
    narrow(at, places=2)
    responses = await asyncio.gather(*(at.ask(CHAT, stream=stream) for _ in range(10)))
    assert {response.status_code for response in responses} == {200}
    assert script.most == 2
    admitted = []
    for record in at.records:
        line = record.timeline
        assert line.body_complete and line.admitted and line.sent
        assert line.body_complete <= line.admitted <= line.sent
        admitted.append(line.admitted)
    # A busy machine makes it longer, and nothing makes it shorter.
    assert max(admitted) - min(admitted) > 4 * 0.045, "five rounds of two"
    assert at.backend().outstanding == 0


async def test_who_waits_is_served_in_order(at: Site) -> None:
    order: list[str] = []

    async def script(request: Received, writer: asyncio.StreamWriter) -> None:
        order.append(request.headers["x-number"])
        await answers(CHAT, delay=0.02)(request, writer)

    at.play(script)
    narrow(at)
    requests = []
    for number in range(6):
        headers = {"x-number": str(number)}
        requests.append(asyncio.ensure_future(at.ask(CHAT, headers=headers)))
        await until(lambda: at.backends[0].requests)
        await asyncio.sleep(0.005)
    await asyncio.gather(*requests)
    assert order == sorted(order)


@every_api
@both
async def test_a_full_queue(at: Site, dialect: Dialect, stream: bool) -> None:
    narrow(at, admission={"queue_limit": 1})
    requests = busy(at, dialect, 2)
    gate = at.gateway.context.gate_of(at.gateway.context.table.routes["m"])
    await until(lambda: gate.depth == 1)
    began = time.monotonic()
    response = await at.ask(dialect, stream=stream)
    assert time.monotonic() - began < SLACK
    assert response.status_code == 503
    assert int(response.headers["retry-after"]) >= 1
    error = response.json()["error"]
    assert error["type"] == "overloaded_error"
    assert "no room for more requests right now; try again in" in error["message"]
    record = await at.record()
    assert (record.outcome, record.backend) == (Outcome.GATEWAY_ERROR, "")
    await give_up(at, requests)


@own
@every_api
@both
async def test_a_place_that_does_not_come_in_time(at: Site, dialect: Dialect, stream: bool) -> None:
    narrow(at, admission={"queue_timeout": 0.15})
    requests = busy(at, dialect)
    await until(lambda: at.backends[0].requests)
    response = await at.ask(dialect, stream=stream)
    assert response.status_code == 503
    assert response.json()["error"]["type"] == "overloaded_error"
    assert "No place for this request became free within 0.15 s" in response.text
    await give_up(at, requests)


@own
@every_api
async def test_signs_of_life_go_out_while_a_request_waits(at: Site, dialect: Dialect) -> None:
    at.play(Counting(dialect, seconds=0.35))
    narrow(at, keepalive_interval=0.1)
    first = asyncio.ensure_future(at.ask(dialect))
    await until(lambda: at.backends[0].requests)
    response = await at.ask(dialect)
    assert response.content.count(dialect.first_keepalive) >= 5
    assert response.content.endswith(b"".join(dialect.frames))
    await first


@own
@every_api
async def test_a_wait_in_vain_after_signs_of_life(at: Site, dialect: Dialect) -> None:
    narrow(at, keepalive_interval=0.05, admission={"queue_timeout": 0.15})
    requests = busy(at, dialect)
    await until(lambda: at.backends[0].requests)
    response = await at.ask(dialect)
    assert response.status_code == 200
    failure = dialect.failure(response.content)
    assert "No place for this request became free" in failure["message"]
    if dialect is RESPONSES:
        assert failure["code"] == "server_is_overloaded", "Codex would send it 30 times"
    await give_up(at, requests)


async def test_a_busy_backend_that_moves_to_another_model(at: Site) -> None:
    """Who waits for it there gets the place that a request of the first model gives back."""
    answer = asyncio.Event()

    async def script(request: Received, writer: asyncio.StreamWriter) -> None:
        await answer.wait()
        await answers(CHAT)(request, writer)

    at.play(script)
    narrow(at)
    first = asyncio.ensure_future(at.ask(CHAT))
    await until(lambda: at.backends[0].requests)
    narrow(at, models=at.arms(["b1"]) | {"n": at.arms(["b0"])["m"]})
    context = at.gateway.context
    body = {**CHAT.request, "model": "n"}
    waiting = asyncio.ensure_future(at.client.post(CHAT.path, json=body))
    await until(lambda: context.gate_of(context.table.routes["n"]).depth == 1)
    answer.set()
    async with asyncio.timeout(SLACK):
        assert (await first).status_code == (await waiting).status_code == 200


async def test_a_backend_that_goes_while_a_request_waits_for_it(at: Site) -> None:
    narrow(at)
    requests = busy(at, CHAT)
    gate = at.gateway.context.gate_of(at.gateway.context.table.routes["m"])
    await until(lambda: at.backends[0].requests)
    waiting = asyncio.ensure_future(at.ask(CHAT))
    await until(lambda: gate.depth == 1)
    at.backend().enabled = False
    at.gateway.wake()
    try:
        response = await asyncio.wait_for(waiting, SLACK)
    finally:
        at.backend().enabled = True
    assert response.status_code == 503
    assert "No server of this model is available" in response.text
    await give_up(at, requests)


async def test_a_failed_attempt_gives_its_place_back_before_the_next_one(at: Site) -> None:
    at.play(hangs_up, answers(CHAT))
    backend = {"url": at.backends[0].url, "max_concurrency": 1}
    at.configure(models=at.arms(["b0"], ["b1"]), backends={"b0": backend})
    for _ in range(4):
        assert (await at.ask(CHAT)).status_code == 200
    assert at.backend("b0").outstanding == at.backend("b1").outstanding == 0


async def test_a_full_arm_is_waited_for(at: Site) -> None:
    """Its load on another arm would bend the split, and hide that the arm is slow."""
    at.play(Counting(CHAT, 0.1), answers(CHAT))
    backend = {"url": at.backends[0].url, "max_concurrency": 1}
    at.configure(models=at.arms(["b0"], ["b1"]), backends={"b0": backend})
    await asyncio.gather(*(at.ask(CHAT) for _ in range(3)))
    assert [record.arm for record in at.records] == ["a0"] * 3
    assert not at.backends[1].requests
