"""Limits of time, and the signs of life that keep a connection open meanwhile."""

from __future__ import annotations

import asyncio
import time
from typing import Any

import pytest

from gateway.records import NoToken, Outcome
from tests.support.apis import CHAT, Dialect
from tests.support.patience import SLACK
from tests.support.scripted import Received
from tests.support.site import (
    Script,
    Site,
    answers,
    every_api,
    own,
    refuses,
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


# Limits


@own
@every_api
@pytest.mark.parametrize("head", [False, True], ids=["silent", "head only"])
async def test_no_first_token_in_time(at: Site, dialect: Dialect, head: bool) -> None:
    at.play(streams(then=silent) if head else silent)
    at.configure(timeouts={"first_token": 0.2})
    response, took = await timed(at, dialect)
    assert response.status_code == 504
    assert 0.18 < took < 0.2 + SLACK
    assert "longer than the 0.2 s this gateway allows for the first token" in response.text
    await expect_closed(at)
    record = await at.record()
    assert (record.outcome, record.no_token) == (Outcome.TIMEOUT, NoToken.TIMEOUT)
    assert (await at.line(record))["detail"].startswith("b0: timeout")


@own
@every_api
async def test_events_without_a_token_do_not_count_as_one(at: Site, dialect: Dialect) -> None:
    """The stream has begun, so its error is an event."""
    at.play(streams(*dialect.opening, then=silent))
    at.configure(timeouts={"first_token": 0.2})
    response, took = await timed(at, dialect)
    assert response.status_code == 200 and 0.18 < took < 0.2 + SLACK
    assert "for the first token" in dialect.failure(response.content)["message"]
    await expect_closed(at)
    assert (await at.record()).no_token is NoToken.TIMEOUT


@own
@every_api
async def test_too_long_between_two_tokens(at: Site, dialect: Dialect) -> None:
    sent = dialect.opening + dialect.tokens[:1]
    at.play(streams(*sent, then=silent))
    at.configure(timeouts={"idle": 0.2})
    response, took = await timed(at, dialect)
    assert response.status_code == 200 and 0.18 < took < 0.2 + SLACK
    assert response.content.startswith(b"".join(sent))
    assert "between two tokens" in dialect.failure(response.content)["message"]
    await expect_closed(at)
    record = await at.record()
    assert (record.outcome, record.no_token) == (Outcome.TIMEOUT, None)


async def test_a_steady_stream_may_take_longer_than_the_idle_limit(at: Site) -> None:
    frames = CHAT.opening + CHAT.tokens * 15 + CHAT.ending
    at.play(streams(*frames, pause=0.04))
    at.configure(timeouts={"idle": 1.0, "first_token": SLACK})
    response, took = await timed(at, CHAT)
    assert response.content == b"".join(frames) and took > 1.0


async def test_a_late_first_token_is_not_idle(at: Site) -> None:
    """The limit between tokens runs from the first one."""
    at.play(after(0.3, answers(CHAT)))
    at.configure(timeouts={"idle": 0.1})
    response, _ = await timed(at, CHAT)
    assert response.content == b"".join(CHAT.frames)


@own
@every_api
@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
async def test_the_whole_request_takes_too_long(at: Site, dialect: Dialect, stream: bool) -> None:
    frames = dialect.opening + dialect.tokens[:1] * 100
    at.play(streams(*frames, pause=0.02) if stream else silent)
    at.configure(timeouts={"total": 0.3})
    response, took = await timed(at, dialect, stream=stream)
    assert 0.28 < took < 0.3 + SLACK
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
    assert response.status_code == 504 and took < 0.2 + SLACK
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
    at.configure(timeouts={"total": 0.6})
    await asyncio.gather(*(at.ask(CHAT) for _ in range(6)))
    assert at.backend().circuit.closed


async def test_the_limit_counts_from_the_attempt_that_is_under_way(at: Site) -> None:
    at.play(after(0.2, refuses("500 Internal Server Error")), after(0.2, answers(CHAT)))
    at.configure(models=at.arms(["b0"], ["b1"]), timeouts={"first_token": 0.3})
    response, took = await timed(at, CHAT)
    assert response.status_code == 200 and took > 0.38
