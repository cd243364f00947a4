"""Stored responses: at the backend that made them, and for the key that did."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from gateway.records import Outcome
from tests.support.apis import CHAT, RESPONSES
from tests.support.patience import SLACK
from tests.support.running import KEY
from tests.support.scripted import Received, reply
from tests.support.site import Script, Site, answers, hangs_up, refuses, silent, streams, until

pytestmark = pytest.mark.asyncio(loop_scope="module")

OTHER = "sk-other-0123456789abcdefghijk"
FOREIGN = {"authorization": f"Bearer {OTHER}"}
PATH = "/v1/responses/resp_1"


def keeper(name: str) -> Script:
    """Makes `resp_1` when asked to, and gives it back with its own name in it."""

    async def script(request: Received, writer: asyncio.StreamWriter) -> None:
        if request.target == RESPONSES.path:
            await answers(RESPONSES)(request, writer)
        else:
            body = {**RESPONSES.reply, "metadata": {"by": name}}
            writer.write(reply(json.dumps(body).encode()))

    return script


def prepare(at: Site, **model: Any) -> None:
    """Two arms of one backend each, half of the sessions each, and two keys."""
    at.play(keeper("b0"), keeper("b1"))
    arms = {f"a{n}": {"weight": 1, "backends": [f"b{n}"]} for n in range(2)}
    keys = [{"name": "dev", "key": KEY}, {"name": "other", "key": OTHER}]
    at.configure(models={"m": {"arms": arms, **model}}, keys=keys)


async def make(at: Site, *, stream: bool = False, session: str = "s") -> str:
    """Make a response; returns its backend's name."""
    response = await at.ask(RESPONSES, stream=stream, headers={"x-session-id": session})
    assert response.status_code == 200
    name: str = response.headers["x-gateway-backend"]
    return name


def asked(at: Site) -> list[str]:
    """Which backends were asked for what, in any order."""
    return sorted(
        f"b{n} {request.method} {request.target}"
        for n, backend in enumerate(at.backends)
        for request in backend.requests
    )


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
async def test_its_own_backend_is_asked_whatever_the_split_says(at: Site, stream: bool) -> None:
    prepare(at)
    for session in map(str, range(8)):
        name = await make(at, stream=stream, session=session)
        for backend in at.backends:
            backend.requests.clear()
        other = {"x-session-id": f"not {session}"}
        got = await at.client.get(PATH, headers=other)
        cancelled = await at.client.post(f"{PATH}/cancel", headers=other)
        continued = await at.client.post(
            RESPONSES.path,
            json={**RESPONSES.request, "previous_response_id": "resp_1"},
            headers=other,
        )
        assert got.json()["metadata"] == cancelled.json()["metadata"] == {"by": name}
        assert continued.headers["x-gateway-backend"] == name
        assert asked(at) == sorted(
            [f"{name} GET {PATH}", f"{name} POST {PATH}/cancel", f"{name} POST /v1/responses"]
        )


async def test_a_response_made_at_the_second_try(at: Site) -> None:
    """The first backend had named a response, and failed before the client heard of it."""
    lost = RESPONSES.opening[0].replace(b"resp_1", b"resp_0") + RESPONSES.error
    at.play(streams(lost), keeper("b1"))
    at.configure(models=at.arms(["b0"], ["b1"]))
    assert await make(at, stream=True) == "b1"
    assert (await at.client.get(PATH)).json()["metadata"] == {"by": "b1"}


@pytest.mark.parametrize("base", ["", "/v1", "/api", "/api/v1", "/v1/v1"])
async def test_every_spelling_of_the_base_url(at: Site, base: str) -> None:
    prepare(at)
    name = await make(at)
    response = await at.client.get(f"{base}/responses/resp_1")
    assert response.json()["metadata"] == {"by": name}
    assert f"{name} GET {PATH}" in asked(at)


async def test_another_key_finds_nothing(at: Site) -> None:
    """Neither to read nor to cancel nor to continue: it might guess an id."""
    prepare(at)
    await make(at)
    for backend in at.backends:
        backend.requests.clear()
    follow_up = {**RESPONSES.request, "previous_response_id": "resp_1"}
    for response in (
        await at.client.get(PATH, headers=FOREIGN),
        await at.client.post(f"{PATH}/cancel", headers=FOREIGN),
        await at.client.post(RESPONSES.path, json=follow_up, headers=FOREIGN),
        await at.client.get("/v1/responses/resp_unknown"),
    ):
        assert response.status_code == 404
        error = response.json()["error"]
        assert error.keys() == {"message", "type", "param", "code"}
        assert "for this key" in error["message"]
    assert asked(at) == []
    assert {record.outcome for record in at.records[1:]} == {Outcome.REJECTED}


async def test_a_response_that_no_longer_fits_its_request(at: Site) -> None:
    """A model that did not make it cannot continue it."""
    prepare(at)
    models = {
        "m": {"arms": {"a0": {"weight": 1, "backends": ["b0"]}}},
        "n": {"arms": {"a0": {"weight": 1, "backends": ["b1"]}}},
    }
    at.configure(models=models)
    await make(at)
    follow_up = {**RESPONSES.request, "model": "n", "previous_response_id": "resp_1"}
    response = await at.client.post(RESPONSES.path, json=follow_up)
    assert response.status_code == 404
    assert response.json()["error"]["param"] == "previous_response_id"
    assert not at.backends[1].requests


async def test_without_a_key(at: Site) -> None:
    prepare(at)
    await make(at)
    response = await at.client.get(PATH, headers={"authorization": "Bearer wrong"})
    assert response.status_code == 401


async def test_a_response_can_be_cancelled_while_it_is_made(at: Site) -> None:
    """Its id is known from `response.created` on; a background one outlives its stream."""
    prepare(at)
    at.play(streams(*RESPONSES.opening, then=silent), streams(*RESPONSES.opening, then=silent))
    async with at.client.stream("POST", RESPONSES.path, json=RESPONSES.streamed) as response:
        name = response.headers["x-gateway-backend"]
        async for line in response.aiter_lines():
            if "response.content_part.added" in line:
                break
        at.play(keeper("b0"), keeper("b1"))
        cancelled = await at.client.post(f"{PATH}/cancel")
        assert cancelled.json()["metadata"] == {"by": name}


async def test_looking_again_costs_no_tokens(at: Site) -> None:
    prepare(at)
    at.configure(keys=[at.base["keys"][0] | {"tokens_per_minute": 100}])
    await make(at)
    for _ in range(3):
        assert (await at.client.get(PATH)).status_code == 200
    await at.record(4)
    assert [record.usage is None for record in at.records] == [False, True, True, True]
    context = at.gateway.context
    left = context.limiter.standing(context.keyring.keys[0]).tokens_left
    assert left is not None and 91 <= left <= 95


async def test_what_the_record_says(at: Site) -> None:
    prepare(at)
    name = await make(at)
    response = await at.client.get(PATH)
    assert response.headers["x-gateway-backend"] == name
    record = await at.record(2)
    assert (record.model, record.backend, record.path) == ("m", name, PATH)
    assert record.forced and not record.stream, "it is no evidence of anything"
    assert (record.outcome, record.status) == (Outcome.OK, 200)


async def test_the_model_is_named_as_the_client_named_it(at: Site) -> None:
    prepare(at, aliases=["nick"], upstream_model="m")
    body = {**RESPONSES.request, "model": "nick"}
    assert (await at.client.post(RESPONSES.path, json=body)).json()["model"] == "nick"
    assert (await at.client.get(PATH)).json()["model"] == "nick"


async def test_nobody_else_can_answer_for_its_backend(at: Site) -> None:
    prepare(at)
    name = await make(at)
    other = "b1" if name == "b0" else "b0"
    at.play(hangs_up, hangs_up)
    asked_before = len(at.backends[int(other[1])].requests)
    assert (await at.client.get(PATH)).status_code == 502
    at.backend(name).up = False
    try:
        assert (await at.client.get(PATH)).status_code == 503
    finally:
        at.backend(name).up = True
    assert len(at.backends[int(other[1])].requests) == asked_before


async def test_a_backend_that_has_forgotten(at: Site) -> None:
    prepare(at)
    await make(at)
    forgotten = refuses("404 Not Found", "Response with id 'resp_1' not found.")
    at.play(forgotten, forgotten)
    response = await at.client.get(PATH)
    assert response.status_code == 404
    assert "Response with id 'resp_1' not found." in response.text


async def test_a_backend_that_is_no_longer_configured(at: Site) -> None:
    prepare(at)
    name = await make(at)
    other = "b1" if name == "b0" else "b0"
    at.configure(models=at.arms([other]), backends={name: {"url": "http://127.0.0.1:9"}})
    follow_up = {**RESPONSES.request, "previous_response_id": "resp_1"}
    assert (await at.client.get(PATH)).status_code == 404
    assert (await at.client.post(RESPONSES.path, json=follow_up)).status_code == 404


async def test_a_client_that_leaves_frees_the_backend(at: Site) -> None:
    prepare(at)
    name = await make(at)
    at.play(silent, silent)
    backend = at.backends[int(name[1])]
    request = asyncio.ensure_future(at.client.get(PATH))
    await until(lambda: len(backend.requests) == 2)
    request.cancel()
    await asyncio.wait_for(backend.requests[1].left.wait(), SLACK)
    assert (await at.record(2)).outcome is Outcome.CLIENT_GONE
    assert at.backend(name).outstanding == 0


async def test_other_apis_store_nothing(at: Site) -> None:
    at.play(answers(CHAT))
    await at.ask(CHAT)
    assert (await at.client.get("/v1/responses/c1")).status_code == 404
