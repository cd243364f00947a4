"""A client that leaves frees everything its request held, at once, whatever it was waiting for."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from gateway.records import NoToken, Outcome
from tests.support.apis import CHAT, MESSAGES, RESPONSES, Dialect
from tests.support.ports import deaf
from tests.support.running import KEY
from tests.support.site import Site, answers, both, every_api, hangs_up, silent, streams, until
from tests.support.wire import head, post, wire

pytestmark = pytest.mark.asyncio(loop_scope="module")


WITHIN = 0.5
"""Seconds in which a backend must learn of a departure."""


def request_of(dialect: Dialect, *, stream: bool) -> bytes:
    return post(dialect.streamed if stream else dialect.request, dialect.path)


async def expect_free(at: Site, *, number: int = 1, stream: bool = True) -> None:
    """The request is over, counted as left by its client, and nothing of it is kept."""
    record = await at.record(number)
    assert record.outcome is Outcome.CLIENT_GONE
    if stream and record.timeline.first_token is None:
        assert record.no_token is NoToken.CLIENT_GONE
    context = at.gateway.context
    assert all(backend.outstanding == 0 for backend in context.table.backends.values())
    assert context.gate_of(context.table.routes["m"]).depth == 0
    assert context.limiter.standing(context.keyring.keys[0]).running == 0


@every_api
@both
async def test_before_the_first_byte(at: Site, dialect: Dialect, stream: bool) -> None:
    """production-stack#634, #1040; litellm#31499, #36123, #37140."""
    async with wire(at.it.port) as one:
        one.send(request_of(dialect, stream=stream))
        await until(lambda: at.backends[0].requests)
    await asyncio.wait_for(at.backends[0].requests[0].left.wait(), WITHIN)
    await expect_free(at, stream=stream)


@every_api
async def test_after_the_head(at: Site, dialect: Dialect) -> None:
    at.play(streams(then=silent))
    async with wire(at.it.port) as one:
        one.send(request_of(dialect, stream=True))
        await until(lambda: at.backends[0].requests)
        await asyncio.sleep(0.03)
    await asyncio.wait_for(at.backends[0].requests[0].left.wait(), WITHIN)
    await expect_free(at)


@every_api
@pytest.mark.parametrize("busy", [False, True], ids=["silent", "streaming"])
async def test_in_the_middle_of_a_stream(at: Site, dialect: Dialect, busy: bool) -> None:
    """Noticed although the backend sends nothing more: not only at its next chunk."""
    frames = dialect.opening + dialect.tokens[:1]
    more = dialect.tokens[:1] * 500 if busy else []
    at.play(streams(*frames, *more, pause=0.01, then=silent))
    async with wire(at.it.port) as one:
        one.send(request_of(dialect, stream=True))
        await one.reader.readuntil(dialect.tokens[0].rstrip(b"\n"))
    await asyncio.wait_for(at.backends[0].requests[0].left.wait(), WITHIN)
    await expect_free(at)
    usage = at.records[0].usage
    assert usage is not None and usage.completion >= 1 and not usage.exact


@both
async def test_in_the_middle_of_a_whole_answer(at: Site, stream: bool) -> None:
    async def half(request: Any, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\n{")
        await writer.drain()
        await asyncio.sleep(30)

    at.play(half)
    async with wire(at.it.port) as one:
        one.send(request_of(CHAT, stream=stream))
        await until(lambda: at.backends[0].requests)
        await asyncio.sleep(0.03)
    await asyncio.wait_for(at.backends[0].requests[0].left.wait(), WITHIN)
    await expect_free(at, stream=stream)


@every_api
@both
async def test_while_it_waits_for_a_place(at: Site, dialect: Dialect, stream: bool) -> None:
    at.configure(backends={"b0": {"url": at.backends[0].url, "max_concurrency": 1}})
    context = at.gateway.context
    gate = context.gate_of(context.table.routes["m"])
    async with wire(at.it.port) as first:
        first.send(request_of(dialect, stream=stream))
        await until(lambda: at.backends[0].requests)
        async with wire(at.it.port) as second:
            second.send(request_of(dialect, stream=stream))
            await until(lambda: gate.depth == 1)
        await until(lambda: gate.depth == 0, WITHIN)
        await at.record()
        assert at.records[0].outcome is Outcome.CLIENT_GONE
        assert at.records[0].backend == "", "no backend was ever asked"
        assert at.backend().outstanding == 1
        assert not at.backends[0].requests[0].left.is_set()
    await expect_free(at, number=2, stream=stream)
    assert len(at.backends[0].requests) == 1


@every_api
@both
async def test_while_it_is_being_connected(at: Site, dialect: Dialect, stream: bool) -> None:
    with deaf() as url:
        at.configure(backends={"b0": {"url": url}}, timeouts={"connect": 20})
        async with wire(at.it.port) as one:
            one.send(request_of(dialect, stream=stream))
            await until(lambda: at.backend().outstanding == 1)
        await until(lambda: at.backend().outstanding == 0, WITHIN)
        await expect_free(at, stream=stream)


@every_api
async def test_between_two_attempts(at: Site, dialect: Dialect) -> None:
    at.play(hangs_up, silent)
    at.configure(models=at.arms(["b0"], ["b1"]))
    async with wire(at.it.port) as one:
        one.send(request_of(dialect, stream=True))
        await until(lambda: at.backends[1].requests)
    await asyncio.wait_for(at.backends[1].requests[0].left.wait(), WITHIN)
    await expect_free(at)
    assert at.records[0].tried == ("b0",)


@every_api
async def test_after_signs_of_life(at: Site, dialect: Dialect) -> None:
    at.configure(keepalive_interval=0.05)
    async with wire(at.it.port) as one:
        one.send(request_of(dialect, stream=True))
        await one.reader.readuntil(dialect.first_keepalive.rstrip(b"\n"))
    await asyncio.wait_for(at.backends[0].requests[0].left.wait(), WITHIN)
    await expect_free(at)


async def test_a_departure_is_not_held_against_the_backend(at: Site) -> None:
    for number in range(1, 8):
        async with wire(at.it.port) as one:
            one.send(request_of(CHAT, stream=True))
            await until(lambda: len(at.backends[0].requests) == number)  # noqa: B023  # it is called in its own turn
        await at.record(number)
    assert at.backend().circuit.closed


async def test_a_place_of_the_key_is_given_back(at: Site) -> None:
    key = at.base["keys"][0] | {"max_concurrency": 1}
    at.configure(keys=[key])
    async with wire(at.it.port) as one:
        one.send(request_of(CHAT, stream=False))
        await until(lambda: at.backends[0].requests)
        response = await at.ask(CHAT)
        assert response.status_code == 429
        assert "1 request" in response.text and int(response.headers["retry-after"]) >= 1
    await until(lambda: at.backend().outstanding == 0)
    at.play(answers(CHAT))
    assert (await at.ask(CHAT)).status_code == 200


async def test_many_leave_at_once(at: Site) -> None:
    """production-stack#1040: counts of requests in flight leaked, one departure after another."""
    at.play(streams(*CHAT.opening, then=silent))
    # Sixty at once in this one loop may take longer to connect than a backend has otherwise.
    at.configure(timeouts={"connect": 20})
    requests = [
        asyncio.ensure_future(at.ask(dialect, stream=n % 2 == 0))
        for n, dialect in enumerate([CHAT, MESSAGES, RESPONSES] * 20)
    ]
    await until(lambda: len(at.backends[0].requests) == 60)
    for one in requests:
        one.cancel()
    await at.record(60)
    await until(lambda: at.backend().outstanding == 0, WITHIN)
    await expect_free(at, number=60, stream=False)
    assert {record.outcome for record in at.records} == {Outcome.CLIENT_GONE}


async def test_a_body_that_never_came_costs_the_key_nothing(at: Site) -> None:
    at.configure(keys=[at.base["keys"][0] | {"requests_per_minute": 60}])
    async with wire(at.it.port) as one:
        one.send(head(headers="content-length: 100\r\n") + json.dumps(CHAT.request).encode()[:20])
        await asyncio.sleep(0.03)
    assert (await at.record()).outcome is Outcome.CLIENT_GONE
    context = at.gateway.context
    assert context.limiter.standing(context.keyring.keys[0]).requests_left == 60
    assert KEY not in at.log.read_text()
