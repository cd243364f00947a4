"""Signs of life while a client waits: in the form its API counts, and only between events."""

from __future__ import annotations

import asyncio
import json
import time
from typing import Any

import pytest

from gateway.records import NoToken, Outcome
from tests.support.apis import CHAT, MESSAGES, RESPONSES, Dialect
from tests.support.patience import SLACK
from tests.support.scripted import Received, chunk
from tests.support.site import (
    Script,
    Site,
    answers,
    every_api,
    hangs_up,
    own,
    refuses,
    says,
    silent,
    streams,
    until,
)

pytestmark = pytest.mark.asyncio(loop_scope="module")


async def timed(at: Site, dialect: Dialect, **options: Any) -> tuple[Any, float]:
    began = time.monotonic()
    response = await at.ask(dialect, **options)
    return response, time.monotonic() - began


async def expect_closed(at: Site) -> None:
    """The backend was told to stop, and nothing is left behind."""
    await asyncio.wait_for(at.backends[0].requests[0].left.wait(), SLACK)
    await until(lambda: at.backend().outstanding == 0)


def after(seconds: float, script: Script) -> Script:
    async def later(request: Received, writer: asyncio.StreamWriter) -> None:
        await asyncio.sleep(seconds)
        await script(request, writer)

    return later


# Signs of life


def pings(dialect: Dialect, content: bytes) -> tuple[int, int]:
    """How many keep-alives came before the first event and after it."""
    before, _, behind = content.partition(dialect.opening[0])
    first, later = dialect.first_keepalive, dialect.keepalive
    assert before == first * before.count(first), before
    return before.count(first), behind.count(later)


@own
@every_api
async def test_a_long_first_token_is_bridged(at: Site, dialect: Dialect) -> None:
    """litellm#34819: no bytes during a long prefill, and a load balancer cut the stream."""
    enough = asyncio.Event()

    async def late(request: Received, writer: asyncio.StreamWriter) -> None:
        await enough.wait()
        await answers(dialect)(request, writer)

    at.play(late)
    at.configure(keepalive_interval=0.15)
    began = time.monotonic()
    content = b""
    async with at.client.stream("POST", dialect.path, json=dialect.streamed) as response:
        assert time.monotonic() - began > 0.13, "the head waits for the first keep-alive"
        assert response.headers["content-type"].startswith("text/event-stream")
        assert response.headers["x-gateway-backend"] == "b0"
        async for part in response.aiter_raw():
            content += part
            if content.count(dialect.first_keepalive) >= 3:
                enough.set()
    before, behind = pings(dialect, content)
    assert before >= 3 and behind == 0
    assert content.endswith(b"".join(dialect.frames))
    record = await at.record()
    line = record.timeline
    assert line.first_token and line.first_token - line.received > 0.45, "a ping is no token"
    assert record.outcome is Outcome.OK


@own
@every_api
async def test_a_pause_within_a_stream_is_bridged(at: Site, dialect: Dialect) -> None:
    frames = dialect.frames
    cut = len(dialect.opening) + 1
    rest = after(0.4, says(*[chunk(frame) for frame in frames[cut:]], chunk(b"")))
    at.play(streams(*frames[:cut], then=rest))
    at.configure(keepalive_interval=0.15)
    response = await at.ask(dialect)
    assert pings(dialect, response.content) == (0, 2)
    assert response.content.replace(dialect.keepalive, b"") == b"".join(frames)


@own
@every_api
async def test_a_sign_of_life_never_stands_within_an_event(at: Site, dialect: Dialect) -> None:
    token = dialect.tokens[0]
    rest = b"".join([token[20:], *dialect.tokens[1:], *dialect.ending])
    then = after(0.3, says(chunk(rest), chunk(b"")))
    at.play(streams(*dialect.opening, token[:20], then=then))
    at.configure(keepalive_interval=0.1)
    response = await at.ask(dialect)
    assert pings(dialect, response.content)[1] >= 1
    assert response.content.replace(dialect.keepalive, b"") == b"".join(dialect.frames)


async def test_no_sign_of_life_where_there_is_life(at: Site) -> None:
    frames = CHAT.opening + CHAT.tokens * 5 + CHAT.ending
    at.play(streams(*frames, pause=0.05))
    at.configure(keepalive_interval=0.15)
    response = await at.ask(CHAT)
    assert response.content == b"".join(frames)


async def test_an_unstreamed_answer_gets_none(at: Site) -> None:
    at.play(after(0.3, answers(MESSAGES)))
    at.configure(keepalive_interval=0.1)
    response = await at.ask(MESSAGES, stream=False)
    assert response.json() == MESSAGES.reply


@own
@every_api
@pytest.mark.parametrize("fault", [refuses("500 Oh no"), hangs_up], ids=["500", "cut"])
async def test_after_the_first_sign_of_life_nothing_is_tried_again(
    at: Site, dialect: Dialect, fault: Script
) -> None:
    at.play(after(0.25, fault), answers(dialect))
    at.configure(models=at.arms(["b0"], ["b1"]), keepalive_interval=0.1)
    response = await at.ask(dialect)
    assert response.status_code == 200
    assert response.content.startswith(dialect.first_keepalive)
    failure = dialect.failure(response.content)
    assert "again" in failure["message"]
    assert not at.backends[1].requests
    record = await at.record()
    assert (record.status, record.outcome) == (200, Outcome.BACKEND_ERROR)
    assert record.no_token is NoToken.BACKEND_ERROR


@own
@every_api
async def test_a_limit_that_passes_after_signs_of_life(at: Site, dialect: Dialect) -> None:
    at.play(silent)
    # Time for three of them, and for a pause of the machine.
    at.configure(keepalive_interval=0.1, timeouts={"first_token": 2.0})
    response, took = await timed(at, dialect)
    assert 1.98 < took < 2.0 + SLACK
    assert 3 <= response.content.count(dialect.first_keepalive) <= 19
    assert "first token" in dialect.failure(response.content)["message"]
    await expect_closed(at)


@own
@every_api
async def test_a_request_error_after_signs_of_life(at: Site, dialect: Dialect) -> None:
    """The status is gone; the words are not."""
    at.play(after(0.25, refuses("400 Bad Request", "temperature must be below 2")))
    at.configure(keepalive_interval=0.1)
    response = await at.ask(dialect)
    assert response.status_code == 200
    assert "temperature must be below 2" in dialect.failure(response.content)["message"]
    assert (await at.record()).outcome is Outcome.REJECTED


async def test_a_whole_answer_after_signs_of_life(at: Site) -> None:
    body = json.dumps(RESPONSES.reply).encode()
    reply = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: %d\r\n\r\n%b"
    at.play(after(0.25, says(reply % (len(body), body))))
    at.configure(keepalive_interval=0.1)
    response = await at.ask(RESPONSES)
    assert response.content.startswith(b": keep-alive\n\n")
    assert b"event: response.completed\n" in response.content


async def test_what_cannot_be_read_after_signs_of_life(at: Site) -> None:
    reply = b"HTTP/1.1 200 OK\r\ncontent-type: text/html\r\ncontent-length: 6\r\n\r\n<html>"
    at.play(after(0.25, says(reply)))
    at.configure(keepalive_interval=0.1)
    response = await at.ask(RESPONSES)
    assert "cannot be read" in RESPONSES.failure(response.content)["message"]


# An engine's own

COMMENT = b": ping\n\n"


async def test_an_engines_own_comments_pass_once_the_stream_is_open(at: Site) -> None:
    opened = [*CHAT.opening, COMMENT, *CHAT.tokens, *CHAT.ending[:-1], COMMENT, CHAT.ending[-1]]
    at.play(streams(COMMENT, COMMENT, *opened, pause=0.03))
    response = await at.ask(CHAT)
    assert response.content == b"".join(opened)
    line = (await at.record()).timeline
    assert line.first_byte and line.first_token and line.first_token - line.first_byte > 0.1


@own
@every_api
async def test_an_engines_comments_are_no_events_of_the_answer(at: Site, dialect: Dialect) -> None:
    """Agents wait for events: a comment neither keeps them waiting nor changes what they get."""
    comments = streams(*[COMMENT] * 20, pause=0.04)
    at.play(comments)
    at.configure(keepalive_interval=0.2)
    response = await at.ask(dialect)
    content = response.content
    assert content.startswith(dialect.first_keepalive), "a comment opens no stream"
    assert content.count(COMMENT) > 5, "in an open one it passes"
    assert content.count(dialect.first_keepalive) >= 2
    failure = dialect.failure(content.replace(COMMENT, b""))
    assert "broke off" in failure["message"]
    if dialect is RESPONSES:
        assert b'"sequence_number":0,' in content
