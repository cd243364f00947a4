"""Limits of time, and the signs of life that keep a connection open meanwhile."""

from __future__ import annotations

import asyncio
import json
import time
from typing import Any

import pytest

from gateway.records import NoToken, Outcome
from tests.support.apis import CHAT, DIALECTS, MESSAGES, RESPONSES, Dialect
from tests.support.scripted import SSE_HEAD, Received, chunk
from tests.support.site import (
    Script,
    Site,
    answers,
    hangs_up,
    refuses,
    says,
    silent,
    streams,
    until,
)

pytestmark = pytest.mark.asyncio(loop_scope="module")

every_api = pytest.mark.parametrize("dialect", DIALECTS, ids=lambda one: one.api)


async def timed(at: Site, dialect: Dialect, **options: Any) -> tuple[Any, float]:
    began = time.monotonic()
    response = await at.ask(dialect, **options)
    return response, time.monotonic() - began


async def expect_closed(at: Site) -> None:
    """The backend was told to stop, and nothing is left behind."""
    await asyncio.wait_for(at.backends[0].requests[0].left.wait(), 0.5)
    await until(lambda: at.backend().outstanding == 0)


def after(seconds: float, script: Script) -> Script:
    async def later(request: Received, writer: asyncio.StreamWriter) -> None:
        await asyncio.sleep(seconds)
        await script(request, writer)

    return later


# Limits


@every_api
@pytest.mark.parametrize("head", [False, True], ids=["silent", "head only"])
async def test_no_first_token_in_time(at: Site, dialect: Dialect, head: bool) -> None:
    at.play(streams(then=silent) if head else silent)
    at.configure(timeouts={"first_token": 0.2})
    response, took = await timed(at, dialect)
    assert response.status_code == 504
    assert 0.18 < took < 0.8
    assert "longer than the 0.2 s this gateway allows for the first token" in response.text
    await expect_closed(at)
    record = await at.record()
    assert (record.outcome, record.no_token) == (Outcome.TIMEOUT, NoToken.TIMEOUT)
    assert (await at.line(record))["detail"].startswith("b0: timeout")


@every_api
async def test_events_without_a_token_do_not_count_as_one(at: Site, dialect: Dialect) -> None:
    """The stream has begun, so its error is an event."""
    at.play(streams(*dialect.opening, then=silent))
    at.configure(timeouts={"first_token": 0.2})
    response, took = await timed(at, dialect)
    assert response.status_code == 200 and 0.18 < took < 0.8
    assert "for the first token" in dialect.failure(response.content)["message"]
    await expect_closed(at)
    assert (await at.record()).no_token is NoToken.TIMEOUT


@every_api
async def test_too_long_between_two_tokens(at: Site, dialect: Dialect) -> None:
    sent = dialect.opening + dialect.tokens[:1]
    at.play(streams(*sent, then=silent))
    at.configure(timeouts={"idle": 0.2})
    response, took = await timed(at, dialect)
    assert response.status_code == 200 and 0.18 < took < 0.8
    assert response.content.startswith(b"".join(sent))
    assert "between two tokens" in dialect.failure(response.content)["message"]
    await expect_closed(at)
    record = await at.record()
    assert (record.outcome, record.no_token) == (Outcome.TIMEOUT, None)


async def test_a_steady_stream_may_take_longer_than_the_idle_limit(at: Site) -> None:
    frames = CHAT.opening + CHAT.tokens * 6 + CHAT.ending
    at.play(streams(*frames, pause=0.04))
    at.configure(timeouts={"idle": 0.2, "first_token": 0.3})
    response, took = await timed(at, CHAT)
    assert response.content == b"".join(frames) and took > 0.4


async def test_a_late_first_token_is_not_idle(at: Site) -> None:
    """The limit between tokens runs from the first one."""
    at.play(after(0.3, answers(CHAT)))
    at.configure(timeouts={"idle": 0.1})
    response, _ = await timed(at, CHAT)
    assert response.content == b"".join(CHAT.frames)


@every_api
@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
async def test_the_whole_request_takes_too_long(at: Site, dialect: Dialect, stream: bool) -> None:
    frames = dialect.opening + dialect.tokens[:1] * 100
    at.play(streams(*frames, pause=0.02) if stream else silent)
    at.configure(timeouts={"total": 0.3})
    response, took = await timed(at, dialect, stream=stream)
    assert 0.28 < took < 0.9
    if stream:
        assert response.status_code == 200
        message = dialect.failure(response.content)["message"]
    else:
        assert response.status_code == 504
        message = response.json()["error"]["message"]
    assert "longer than the 0.3 s this gateway allows for a whole request" in message
    await expect_closed(at)
    assert (await at.record()).outcome is Outcome.TIMEOUT


async def test_an_unstreamed_answer_has_no_first_token_to_wait_for(at: Site) -> None:
    at.play(after(0.3, answers(CHAT)))
    at.configure(timeouts={"first_token": 0.1, "idle": 0.1})
    response, _ = await timed(at, CHAT, stream=False)
    assert response.json() == CHAT.reply


async def test_a_limit_is_not_a_reason_to_try_elsewhere(at: Site) -> None:
    """The client has waited its time; another backend would make it wait again."""
    at.play(silent, answers(CHAT))
    at.configure(models=at.arms(["b0"], ["b1"]), timeouts={"first_token": 0.2})
    response, took = await timed(at, CHAT)
    assert response.status_code == 504 and took < 0.8
    assert not at.backends[1].requests


async def test_limits_that_pass_open_the_circuit(at: Site) -> None:
    """It accepts requests and answers none: that is a failure like any other."""
    at.play(silent)
    at.configure(timeouts={"first_token": 0.1})
    await asyncio.gather(*(at.ask(CHAT) for _ in range(5)))
    assert not at.backend().circuit.closed


async def test_long_answers_do_not_open_the_circuit(at: Site) -> None:
    """A healthy stream that outlasts the limit for a whole request is the limit's doing."""
    at.play(streams(*(CHAT.opening + CHAT.tokens[:1] * 100), pause=0.02))
    at.configure(timeouts={"total": 0.2})
    await asyncio.gather(*(at.ask(CHAT) for _ in range(6)))
    assert at.backend().circuit.closed


async def test_the_limit_counts_from_the_attempt_that_is_under_way(at: Site) -> None:
    at.play(after(0.2, refuses("500 Internal Server Error")), after(0.2, answers(CHAT)))
    at.configure(models=at.arms(["b0"], ["b1"]), timeouts={"first_token": 0.3})
    response, took = await timed(at, CHAT)
    assert response.status_code == 200 and took > 0.38


# Signs of life


def pings(dialect: Dialect, content: bytes) -> tuple[int, int]:
    """How many keep-alives came before the first event and after it."""
    before, _, behind = content.partition(dialect.opening[0])
    first, later = dialect.first_keepalive, dialect.keepalive
    assert before == first * before.count(first), before
    return before.count(first), behind.count(later)


@every_api
async def test_a_long_first_token_is_bridged(at: Site, dialect: Dialect) -> None:
    """litellm#34819: no bytes during a long prefill, and a load balancer cut the stream."""
    at.play(after(0.5, answers(dialect)))
    at.configure(keepalive_interval=0.15)
    began = time.monotonic()
    async with at.client.stream("POST", dialect.path, json=dialect.streamed) as response:
        assert 0.13 < time.monotonic() - began < 0.4, "the head waits for the first keep-alive"
        assert response.headers["content-type"].startswith("text/event-stream")
        assert response.headers["x-gateway-backend"] == "b0"
        content = await response.aread()
    assert pings(dialect, content) == (3, 0)
    assert content.endswith(b"".join(dialect.frames))
    record = await at.record()
    line = record.timeline
    assert line.first_token and line.first_token - line.received > 0.45, "a ping is no token"
    assert record.outcome is Outcome.OK


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


@every_api
async def test_a_limit_that_passes_after_signs_of_life(at: Site, dialect: Dialect) -> None:
    at.play(silent)
    at.configure(keepalive_interval=0.1, timeouts={"first_token": 0.35})
    response, took = await timed(at, dialect)
    assert 0.33 < took < 0.8
    assert response.content.count(dialect.first_keepalive) == 3
    assert "first token" in dialect.failure(response.content)["message"]
    await expect_closed(at)


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
    assert "cannot be read" in RESPONSES.failure(response.content)["message"]


async def test_an_engines_own_comments_pass_and_are_no_token(at: Site) -> None:
    comment = b": keep-alive\n\n"
    at.play(streams(comment, comment, *CHAT.frames, pause=0.06))
    response = await at.ask(CHAT)
    assert response.content == comment * 2 + b"".join(CHAT.frames)
    line = (await at.record()).timeline
    assert line.first_byte and line.first_token and line.first_token - line.first_byte > 0.1


async def test_the_first_token_of_messages_is_not_the_end(at: Site) -> None:
    """litellm#25598: on /v1/messages the time to the first token was the whole duration."""
    at.play(answers(MESSAGES, pause=0.03))
    await at.ask(MESSAGES)
    line = (await at.record()).timeline
    assert line.first_byte and line.first_token and line.last_token and line.done
    assert line.first_token - line.first_byte > 0.05, "message_start stopped the clock"
    assert line.done - line.first_token > 0.1


async def test_announcements_of_responses_are_no_token(at: Site) -> None:
    """`response.created` comes before the engine has done anything."""
    at.play(answers(RESPONSES, pause=0.03))
    await at.ask(RESPONSES)
    line = (await at.record()).timeline
    assert line.first_byte and line.first_token
    assert line.first_token - line.first_byte > 0.08


async def test_a_head_in_good_time_is_not_a_stream(at: Site) -> None:
    """vLLM sends its head before it has looked at the prompt: the gateway's head waits."""
    at.play(says(SSE_HEAD, b"".join(map(chunk, CHAT.frames)) + chunk(b""), pause=0.2))
    began = time.monotonic()
    async with at.client.stream("POST", CHAT.path, json=CHAT.streamed) as response:
        assert time.monotonic() - began > 0.18
        await response.aread()
    line = (await at.record()).timeline
    assert line.upstream_headers and line.first_byte
    assert line.first_byte - line.upstream_headers > 0.18
