"""Another backend answers where one fails, as long as nothing has reached the client."""

from __future__ import annotations

import asyncio
import time

import pytest

from gateway.records import Outcome
from tests.support.apis import CHAT, Dialect
from tests.support.patience import SLACK
from tests.support.ports import deaf, nobody
from tests.support.scripted import Received, reply
from tests.support.site import (
    Script,
    Site,
    answers,
    both,
    every_api,
    hangs_up,
    refuses,
    says,
    silent,
    streams,
)

pytestmark = pytest.mark.asyncio(loop_scope="module")


FAULTS: dict[str, Script] = {
    "closed without a byte": hangs_up,
    "malformed": says(b"no HTTP\r\n\r\n"),
    "HTML": says(reply(b"<html>", headers="content-type: text/html\r\n")),
    "401": refuses("401 Unauthorized"),
    "429": refuses("429 Too Many Requests"),
    "500": refuses("500 Internal Server Error"),
    "503": refuses("503 Service Unavailable"),
    "no such route": says(reply(b'{"detail":"Not Found"}', status="404 Not Found")),
}
STREAM_FAULTS: dict[str, Script] = {
    "cut before its first event": streams(then=hangs_up),
    "ended before its first event": streams(),
    "cut behind comments": streams(b": ping\n\n", b": ping\n\n", pause=0.02, then=hangs_up),
    "ended behind comments": streams(b": ping\n\n"),
    "an error as its first event": streams(CHAT.error, b"data: [DONE]\n\n"),
    "an error with its first token": streams(CHAT.opening[0] + CHAT.tokens[0] + CHAT.error),
}


def in_turn(*scripts: Script) -> Script:
    """Whichever backend is asked first plays the first script, and so on; then the last one."""
    left = list(scripts)

    async def script(request: Received, writer: asyncio.StreamWriter) -> None:
        await (left.pop(0) if len(left) > 1 else left[0])(request, writer)

    return script


# To another backend of the arm


@both
@pytest.mark.parametrize("fault", FAULTS)
async def test_the_next_backend_of_the_arm(at: Site, fault: str, stream: bool) -> None:
    script = in_turn(FAULTS[fault], answers(CHAT))
    at.play(script, script)
    at.configure(models=at.arms(["b0", "b1"]))
    response = await at.ask(CHAT, stream=stream)
    assert response.status_code == 200
    record = await at.record()
    assert record.outcome is Outcome.OK
    assert (record.assigned_arm, record.arm) == ("a0", "a0")
    assert sorted([*record.tried, record.backend]) == ["b0", "b1"] == at.served()
    assert response.headers["x-gateway-backend"] == record.backend
    assert record.tried[0] in (await at.line(record))["detail"]
    assert at.backend("b0").outstanding == at.backend("b1").outstanding == 0


@pytest.mark.parametrize("fault", STREAM_FAULTS)
async def test_a_stream_that_fails_before_its_first_event(at: Site, fault: str) -> None:
    script = in_turn(STREAM_FAULTS[fault], answers(CHAT))
    at.play(script, script)
    at.configure(models=at.arms(["b0", "b1"]))
    await at.expect_good(CHAT, stream=True)
    assert len((await at.record()).tried) == 1


@every_api
async def test_an_error_as_the_first_event_in_every_api(at: Site, dialect: Dialect) -> None:
    script = in_turn(streams(dialect.error, *dialect.done), answers(dialect))
    at.play(script, script)
    at.configure(models=at.arms(["b0", "b1"]))
    await at.expect_good(dialect, stream=True)
    assert len((await at.record()).tried) == 1


@both
async def test_nothing_listens(at: Site, stream: bool) -> None:
    at.play(silent, answers(CHAT))
    with nobody() as url:
        at.configure(models=at.arms(["b0"], ["b1"]), backends={"b0": {"url": url}})
        await at.expect_good(CHAT, stream=stream)
    assert (await at.record()).tried == ("b0",)


async def test_no_answer_to_a_connection(at: Site) -> None:
    at.play(silent, answers(CHAT))
    with deaf() as url:
        at.configure(
            models=at.arms(["b0"], ["b1"]),
            backends={"b0": {"url": url}},
            timeouts={"connect": 0.2},
        )
        # The pool of an address keeps the limit it was made with; this address is new.
        began = time.monotonic()
        await at.expect_good(CHAT, stream=True)
        assert 0.15 < time.monotonic() - began < 0.2 + SLACK
    record = await at.record()
    assert record.tried == ("b0",)
    assert "no connection within 0.2 s" in (await at.line(record))["detail"]


async def test_what_is_sent_again_is_the_same(at: Site) -> None:
    script = in_turn(hangs_up, answers(CHAT))
    at.play(script, script)
    at.configure(models=at.arms(["b0", "b1"]))
    await at.expect_good(CHAT, stream=True, headers={"x-kept": "1"})
    first, second = (request for backend in at.backends for request in backend.requests)
    assert first.body == second.body
    for name in ("x-request-id", "x-kept", "content-length", "content-type"):
        assert first.headers[name] == second.headers[name]


async def test_the_marks_are_those_of_the_attempt_that_answered(at: Site) -> None:
    """A token that came with an error never reached the client: it is nobody's first token."""
    fault = streams(CHAT.opening[0] + CHAT.tokens[0] + CHAT.tokens[1] + CHAT.error)
    script = in_turn(fault, answers(CHAT, delay=0.05, pause=0.02))
    at.play(script, script)
    at.configure(models=at.arms(["b0", "b1"]))
    await at.expect_good(CHAT, stream=True)
    record = await at.record()
    line = record.timeline
    assert line.sent and line.upstream_headers and line.first_byte and line.first_token
    assert line.sent + 0.04 < line.upstream_headers <= line.first_byte < line.first_token
    assert len(record.gaps) == 1 and record.gaps[0] > 0.01
    assert record.usage is not None and record.usage.exact


# To another arm


@both
async def test_another_arm_when_nothing_of_its_own_is_left(at: Site, stream: bool) -> None:
    """Metrics name the arm that served, evidence the one that was assigned."""
    at.play(hangs_up, hangs_up, answers(CHAT))
    at.configure(models=at.arms(["b0", "b1"], ["b2"]))
    response = await at.ask(CHAT, stream=stream)
    assert response.status_code == 200
    assert response.headers["x-gateway-arm"] == "a1"
    record = await at.record()
    assert (record.assigned_arm, record.arm, record.backend) == ("a0", "a1", "b2")
    assert sorted(record.tried) == ["b0", "b1"]
    assert not record.forced
    page = (await at.client.get("/metrics")).text
    failovers = 'gateway_failovers_total{model="m",assigned_arm="a0",served_arm="a1"} '
    assert int(page.partition(failovers)[2].split()[0]) >= 1


async def test_crossing_may_be_forbidden(at: Site) -> None:
    at.play(hangs_up, answers(CHAT))
    at.configure(models=at.arms(["b0"], ["b1"], cross_arm_failover=False))
    response = await at.ask(CHAT)
    assert response.status_code == 502
    assert at.served() == ["b0"]
    assert (await at.record()).arm == "a0"


@pytest.mark.parametrize("by", ["suffix", "header"])
async def test_an_arm_that_was_chosen_by_hand_is_never_left(at: Site, by: str) -> None:
    at.play(hangs_up, answers(CHAT))
    at.configure(models=at.arms(["b0"], ["b1"]))
    body = {**CHAT.streamed, **({"model": "m@a0"} if by == "suffix" else {})}
    headers = {"x-gateway-arm": "a0"} if by == "header" else {}
    response = await at.client.post(CHAT.path, json=body, headers=headers)
    assert response.status_code == 502
    assert at.served() == ["b0"]
    record = await at.record()
    assert record.forced and record.assigned_arm == "a0"


# Where to stop


@both
async def test_three_attempts_are_enough(at: Site, stream: bool) -> None:
    at.play(hangs_up, refuses("500 Internal Server Error"), refuses("503 Service Unavailable"))
    at.configure(models=at.arms(["b0"], ["b1"], ["b2"]))
    response = await at.ask(CHAT, stream=stream)
    assert response.status_code == 503, "the last word is the last backend's"
    assert at.served() == ["b0", "b1", "b2"]
    record = await at.record()
    detail = (await at.line(record))["detail"]
    assert all(name in detail for name in ("b0: ", "b1: ", "b2: "))


@both
@pytest.mark.parametrize("status", ["400 Bad Request", "413 Content Too Large"])
async def test_a_fault_of_the_request_is_not_tried_elsewhere(
    at: Site, status: str, stream: bool
) -> None:
    at.play(refuses(status), answers(CHAT))
    at.configure(models=at.arms(["b0"], ["b1"]))
    response = await at.ask(CHAT, stream=stream)
    assert response.status_code == int(status[:3])
    assert at.served() == ["b0"]
    assert (await at.record()).outcome is Outcome.REJECTED


@every_api
@pytest.mark.parametrize("end", ["cut", "error"])
async def test_once_an_event_is_out_nothing_is_tried_again(
    at: Site, dialect: Dialect, end: str
) -> None:
    last = [dialect.error] if end == "error" else []
    script = streams(dialect.opening[0], *last, pause=0.03, then=hangs_up)
    at.play(script, answers(dialect))
    at.configure(models=at.arms(["b0"], ["b1"]))
    response = await at.ask(dialect)
    assert response.status_code == 200
    dialect.failure(response.content)
    assert at.served() == ["b0"]
