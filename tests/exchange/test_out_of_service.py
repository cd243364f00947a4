"""What a client is told when what it may use is out of service, though the rest is not."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import httpx
import pytest

from gateway.records import Outcome
from tests.support.apis import CHAT, RESPONSES, Dialect
from tests.support.site import Site, answers, both, every_api, silent, until

pytestmark = pytest.mark.asyncio(loop_scope="module")

OF_THE_MODEL = "No server of this model is available right now; try again in a few seconds."
OF_THE_ARM = (
    "No server of arm a1 of model m is available; the model's other arms have some. Leave the arm "
    "out of the request, or try again in a few seconds."
)
BY_HAND = {"x-gateway-arm": "a1"}


@contextmanager
def down(at: Site, *names: str) -> Iterator[None]:
    for name in names:
        at.backend(name).up = False
    try:
        yield
    finally:
        for name in names:
            at.backend(name).up = True


def told(response: httpx.Response) -> Any:
    assert response.status_code == 503
    assert response.headers["retry-after"] == "5"
    return response.json()["error"]["message"]


@every_api
@both
@pytest.mark.parametrize("by", ["suffix", "header"])
async def test_an_arm_that_was_chosen_by_hand(
    at: Site, dialect: Dialect, by: str, stream: bool
) -> None:
    at.configure(models=at.arms(["b0"], ["b1"]))
    body = dict(dialect.streamed if stream else dialect.request)
    if by == "suffix":
        body["model"] = "m@a1"
    with down(at, "b1"):
        headers = BY_HAND if by == "header" else {}
        response = await at.client.post(dialect.path, json=body, headers=headers)
        with down(at, "b0"):
            without = await at.ask(dialect, stream=stream)
    assert told(response) == OF_THE_ARM
    assert told(without) == OF_THE_MODEL
    # It is the same failure, said more exactly.
    alike = [{**one.json()["error"], "message": ""} for one in (response, without)]
    assert alike[0] == alike[1]
    assert at.served() == []
    await at.record(2)
    outcomes = [(record.outcome, record.assigned_arm) for record in at.records]
    assert outcomes == [(Outcome.BACKEND_ERROR, "a1"), (Outcome.BACKEND_ERROR, "a0")]


async def test_an_arm_chosen_by_hand_when_no_other_serves_either(at: Site) -> None:
    at.configure(models=at.arms(["b0"], ["b1"]))
    with down(at, "b0", "b1"):
        response = await at.ask(CHAT, headers=BY_HAND)
    assert told(response) == OF_THE_MODEL


async def test_an_arm_without_weight_is_no_other_to_go_to(at: Site) -> None:
    arms = {
        "a0": {"weight": 0, "backends": ["b0"]},
        "a1": {"weight": 1, "backends": ["b1"]},
    }
    at.configure(models={"m": {"arms": arms}})
    with down(at, "b1"):
        response = await at.ask(CHAT, headers=BY_HAND)
    assert told(response) == OF_THE_MODEL


async def test_an_arm_that_nobody_chose_is_not_named(at: Site) -> None:
    at.configure(models=at.arms(["b0"], ["b1"], cross_arm_failover=False))
    with down(at, "b0"):
        response = await at.ask(CHAT)
    assert told(response) == OF_THE_MODEL


async def test_an_arm_that_goes_while_a_request_waits_for_it(at: Site) -> None:
    at.play(answers(CHAT), silent)
    backend = {"url": at.backends[1].url, "max_concurrency": 1}
    at.configure(models=at.arms(["b0"], ["b1"]), backends={"b1": backend})
    gate = at.gateway.context.gate_of(at.gateway.context.table.routes["m"])
    running = asyncio.ensure_future(at.ask(CHAT, stream=False, headers=BY_HAND))
    await until(lambda: at.backends[1].requests)
    waiting = asyncio.ensure_future(at.ask(CHAT, stream=False, headers=BY_HAND))
    await until(lambda: gate.depth == 1)
    with down(at, "b1"):
        at.gateway.wake()
        response = await waiting
    assert told(response) == OF_THE_ARM
    running.cancel()
    await until(lambda: at.backend("b1").outstanding == 0)


async def test_the_server_that_keeps_a_response(at: Site) -> None:
    at.play(answers(RESPONSES), answers(RESPONSES))
    at.configure(models=at.arms(["b0"], ["b1"]))
    assert (await at.ask(RESPONSES, stream=False, headers=BY_HAND)).status_code == 200
    body = {**RESPONSES.request, "previous_response_id": RESPONSES.reply["id"]}
    with down(at, "b1"):
        response = await at.client.post(RESPONSES.path, json=body)
    assert told(response) == (
        "The server that keeps this response is not available right now; try again in a few "
        "seconds."
    )
