"""What is held against a backend, what is not, and how it comes back."""

from __future__ import annotations

import asyncio
import json
import time

import pytest

from gateway.routing.circuit import Circuit, State
from tests.support.apis import CHAT
from tests.support.patience import SLACK
from tests.support.scripted import Received
from tests.support.site import (
    Script,
    Site,
    answers,
    both,
    hangs_up,
    refuses,
    silent,
    streams,
    until,
)

pytestmark = pytest.mark.asyncio(loop_scope="module")


class OnlyRequests(Circuit):
    """A circuit that no health probe closes in the middle of a test."""

    def probed(self) -> None: ...


# Connections that went stale


@both
async def test_a_stale_connection_is_tried_again_without_blame(at: Site, stream: bool) -> None:
    """Servers close idle connections when they like: that says nothing about the backend."""
    carried: set[int] = set()

    async def once(request: Received, writer: asyncio.StreamWriter) -> None:
        if request.connection in carried:
            writer.close()
            return
        carried.add(request.connection)
        await answers(CHAT)(request, writer)

    at.play(once, answers(CHAT))
    at.configure(models=at.arms(["b0"], ["b1"]))
    for number in range(1, 8):
        await at.expect_good(CHAT, stream=stream)
        record = await at.record(number)
        assert (record.backend, record.tried) == ("b0", ())
    assert at.backend().circuit.state is State.CLOSED
    assert len(at.backends[0].requests) > 7, "no connection was ever used again"


async def test_a_connection_that_dies_afresh_is_the_backends_fault(at: Site) -> None:
    first = True

    async def script(request: Received, writer: asyncio.StreamWriter) -> None:
        nonlocal first
        if not first:
            writer.close()
            return
        first = False
        await answers(CHAT)(request, writer)

    at.play(script)
    await at.expect_good(CHAT, stream=False)
    response = await at.ask(CHAT, stream=False)
    assert response.status_code == 502
    assert len(at.backends[0].requests) == 3, "once on the old connection, once on a fresh one"


# The circuit


async def test_the_circuit_opens_after_five_failures_and_heals(at: Site) -> None:
    at.play(hangs_up, answers(CHAT))
    at.configure(models=at.arms(["b0"], ["b1"]))
    circuit = at.backend().circuit = OnlyRequests(at.gateway.context.clock, cooldown=0.2)
    for number in range(1, 8):
        await at.expect_good(CHAT, stream=True)
        tried = (await at.record(number)).tried
        assert tried == (("b0",) if number <= 5 else ()), f"request {number}"
    assert not circuit.closed
    assert len(at.backends[0].requests) == 5
    at.play(answers(CHAT), answers(CHAT))
    await asyncio.sleep(0.21)
    await at.expect_good(CHAT, stream=True)
    assert (await at.record(8)).backend == "b0"
    assert circuit.closed


async def test_a_failed_trial_keeps_the_circuit_open(at: Site) -> None:
    at.play(hangs_up, answers(CHAT))
    at.configure(models=at.arms(["b0"], ["b1"]))
    clock = at.gateway.context.clock
    circuit = at.backend().circuit = OnlyRequests(clock, threshold=1, cooldown=0.2)
    await at.expect_good(CHAT, stream=True)
    await asyncio.sleep(0.21)
    at.backends[0].requests.clear()
    await asyncio.gather(*(at.expect_good(CHAT, stream=True) for _ in range(5)))
    assert len(at.backends[0].requests) == 1, "one trial only"
    assert circuit.state is State.OPEN


async def test_an_open_circuit_and_nobody_else(at: Site) -> None:
    at.play(hangs_up)
    at.backend().circuit = OnlyRequests(at.gateway.context.clock, threshold=1)
    assert (await at.ask(CHAT)).status_code == 502
    began = time.monotonic()
    response = await at.ask(CHAT)
    assert response.status_code == 503 and time.monotonic() - began < SLACK
    assert "retry-after" in response.headers
    assert len(at.backends[0].requests) == 1


async def test_faults_of_requests_never_open_a_circuit(at: Site) -> None:
    at.play(refuses("400 Bad Request"))
    for _ in range(12):
        assert (await at.ask(CHAT)).status_code == 400
    assert at.backend().circuit.state is State.CLOSED


FULL: dict[str, Script] = {
    "429": refuses("429 Too Many Requests"),
    "529": refuses("529 Site is overloaded"),
    "an event": streams(b'data: {"error":{"message":"x","type":"rate_limit_error"}}\n\n'),
    "an event, in Anthropic's word": streams(b'data: {"error":{"type":"overloaded_error"}}\n\n'),
}


@pytest.mark.parametrize("how", FULL)
async def test_a_full_backend_is_passed_over_but_stays_in_service(at: Site, how: str) -> None:
    at.play(FULL[how], answers(CHAT))
    at.configure(models=at.arms(["b0"], ["b1"]))
    for number in range(1, 8):
        await at.expect_good(CHAT, stream=True)
        assert (await at.record(number)).tried == ("b0",), f"request {number}"
    assert at.backend().circuit.state is State.CLOSED


async def test_being_full_is_no_sign_of_working(at: Site) -> None:
    """Neither between failures, nor as the answer to a trial: that is left open."""
    clock = at.gateway.context.clock
    circuit = at.backend().circuit = OnlyRequests(clock, threshold=2, cooldown=0.2)
    for script in (hangs_up, FULL["429"], hangs_up):
        assert circuit.closed
        at.play(script)
        await at.ask(CHAT)
    assert not circuit.closed
    at.play(FULL["429"])
    for _ in range(2):
        await asyncio.sleep(0.21)
        at.backends[0].requests.clear()
        assert (await at.ask(CHAT)).status_code == 503
        assert len(at.backends[0].requests) == 1, "one trial for each cooldown, which stays short"
        assert circuit.state is State.HALF_OPEN
    at.play(answers(CHAT))
    await asyncio.sleep(0.21)
    await at.expect_good(CHAT, stream=True)
    assert circuit.closed


async def test_a_backend_out_of_service_is_taken_out(at: Site) -> None:
    at.play(refuses("503 Service Unavailable"), answers(CHAT))
    at.configure(models=at.arms(["b0"], ["b1"]))
    at.backend().circuit = OnlyRequests(at.gateway.context.clock)
    for _ in range(7):
        await at.expect_good(CHAT, stream=True)
    assert len(at.backends[0].requests) == 5


# What peers got wrong


async def test_a_hung_backend_blocks_nobody_else(at: Site) -> None:
    """production-stack#749."""
    at.play(silent, answers(CHAT))
    at.configure(models=at.arms(["b0"], ["b1"]))
    hung = [asyncio.ensure_future(at.ask(CHAT, headers={"x-gateway-arm": "a0"})) for _ in range(20)]
    await until(lambda: len(at.backends[0].requests) == 20)
    began = time.monotonic()
    for _ in range(5):
        await at.expect_good(CHAT, stream=True, headers={"x-gateway-arm": "a1"})
    assert time.monotonic() - began < SLACK
    for one in hung:
        one.cancel()
    await until(lambda: at.backend().outstanding == 0)


async def test_a_session_follows_the_weights(at: Site) -> None:
    """litellm#19536, litellm#32308: affinity went on overriding the weights."""
    at.play(answers(CHAT), answers(CHAT))
    at.configure(models=at.arms(["b0"], ["b1"]))
    headers = {"x-session-id": "one and the same"}
    for _ in range(3):
        await at.expect_good(CHAT, stream=True, headers=headers)
    at.gateway.context.table.routes["m"].set_weights({"a0": 0, "a1": 1}, revision=1)
    for _ in range(3):
        await at.expect_good(CHAT, stream=True, headers=headers)
    assert at.served() == ["b0"] * 3 + ["b1"] * 3
    assert {record.assigned_arm for record in at.records[3:]} == {"a1"}
    assert len({record.session for record in at.records}) == 1


async def test_the_body_says_nothing_of_the_gateway(at: Site) -> None:
    at.play(answers(CHAT))
    await at.expect_good(CHAT, stream=False, headers={"x-gateway-arm": "a0"})
    (request,) = at.backends[0].requests
    assert not [name for name in request.headers if name.startswith("x-gateway")]
    assert json.loads(request.body) == CHAT.request
