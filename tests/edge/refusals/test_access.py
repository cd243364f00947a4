"""What a key may not do: models, arms and limits, told with what to do instead."""

from __future__ import annotations

import pytest

from gateway.records import Outcome
from tests.edge.refusals.keys import BLIND, NONE, POOR
from tests.edge.refusals.told import openai_error, told
from tests.support.apis import CHAT, DIALECTS, MESSAGES, Dialect
from tests.support.running import KEY, Running
from tests.support.scripted import ScriptedBackend

pytestmark = pytest.mark.asyncio(loop_scope="module")


@pytest.mark.parametrize("dialect", DIALECTS, ids=lambda one: one.api)
async def test_an_unknown_model_is_told_the_models_of_the_key(
    it: Running, backend: ScriptedBackend, dialect: Dialect
) -> None:
    response = await it.client.post(dialect.path, json={**dialect.request, "model": "gpt-9"})
    error = told(response, dialect)
    assert response.status_code == 404
    assert error["message"] == "There is no model `gpt-9` here. Models for this key: `m`."
    assert "secret-model" not in response.text
    if dialect is not MESSAGES:
        assert (error["param"], error["code"]) == ("model", "model_not_found")
    assert not backend.requests


async def test_a_model_of_others_is_forbidden(it: Running, backend: ScriptedBackend) -> None:
    response = await it.client.post(CHAT.path, json={**CHAT.request, "model": "secret-model"})
    assert response.status_code == 403
    error = openai_error(response)
    assert "This key may not use model `secret-model`. Models for this key: `m`." in str(error)
    assert (error["type"], error["code"]) == ("permission_error", "model_not_allowed")
    assert not backend.requests


async def test_a_key_without_models_is_told_so(it: Running) -> None:
    headers = {"authorization": f"Bearer {NONE}"}
    response = await it.client.post(CHAT.path, json=CHAT.request, headers=headers)
    assert response.status_code == 403
    assert "This key may use no model; ask the operator to allow one." in response.text


@pytest.mark.parametrize("by", ["suffix", "header"])
async def test_an_arm_that_is_not_there_or_not_allowed(it: Running, by: str) -> None:
    for arm, status, says in (
        ("a7", 400, "Model `m` has no arm `a7`; it has `a0`."),
        ("a0", 403, "This key may not choose arm `a0` by hand"),
    ):
        body = {**CHAT.request, **({"model": f"m@{arm}"} if by == "suffix" else {})}
        headers = {"x-gateway-arm": arm} if by == "header" else {}
        response = await it.client.post(CHAT.path, json=body, headers=headers)
        assert (response.status_code, says in response.text) == (status, True), response.text


async def test_a_key_that_may_not_know_its_arm_cannot_find_out_which_there_are(
    it: Running,
) -> None:
    headers = {"authorization": f"Bearer {BLIND}"}
    for arm in ("a0", "a7"):
        body = {**CHAT.request, "model": f"m@{arm}"}
        response = await it.client.post(CHAT.path, json=body, headers=headers)
        assert response.status_code == 403
        assert f"This key may not choose arm `{arm}` by hand" in response.text
    body = {**CHAT.request, "model": "m@a1"}
    response = await it.client.post(CHAT.path, json=body, headers=headers)
    assert response.status_code == 400
    assert "Model `m` has no arm `a1`; it has none for this key." in response.text


@pytest.mark.parametrize("dialect", [CHAT, MESSAGES], ids=lambda one: one.api)
@pytest.mark.parametrize(
    ("sent", "says"),
    [
        ({}, "Authorization: Bearer"),
        ({"authorization": "Basic abc"}, "Bearer"),
        ({"authorization": "Bearer sk-wrong"}, "Authorization"),
        ({"x-api-key": "sk-wrong"}, "x-api-key"),
    ],
    ids=["no key", "another scheme", "unknown", "unknown x-api-key"],
)
async def test_without_a_good_key(
    it: Running, dialect: Dialect, sent: dict[str, str], says: str
) -> None:
    it.client.headers.pop("authorization")
    try:
        response = await it.client.post(dialect.path, json=dialect.request, headers=sent)
    finally:
        it.client.headers["authorization"] = f"Bearer {KEY}"
    error = told(response, dialect)
    assert response.status_code == 401
    assert error["type"] == "authentication_error"
    assert says in error["message"] and "sk-wrong" not in response.text
    assert (await it.record()).outcome is Outcome.REJECTED


async def test_the_limits_of_a_key(it: Running) -> None:
    headers = {"authorization": f"Bearer {POOR}"}
    for left in (1, 0):
        response = await it.client.post(CHAT.path, json=CHAT.request, headers=headers)
        assert response.status_code == 200
        assert response.headers["x-ratelimit-limit-requests"] == "2"
        assert response.headers["x-ratelimit-remaining-requests"] == str(left)
        assert response.headers["x-ratelimit-limit-tokens"] == "100"
    for dialect in (CHAT, MESSAGES):
        response = await it.client.post(dialect.path, json=dialect.request, headers=headers)
        error = told(response, dialect)
        assert response.status_code == 429
        assert error["type"] == "rate_limit_error"
        assert "poor" in error["message"] and "2 requests" in error["message"]
        assert 1 <= int(response.headers["retry-after"]) <= 30
        assert response.headers["x-ratelimit-remaining-requests"] == "0"
        assert response.headers["x-ratelimit-reset-requests"] != "0s"


async def test_mistyped_models_mint_no_series(it: Running) -> None:
    """litellm#12159."""
    for name in ("gpt-typo-1", "gpt-typo-2"):
        await it.client.post(CHAT.path, json={**CHAT.request, "model": name})
    page = (await it.client.get("/metrics")).text
    assert 'model="unknown"' in page and "typo" not in page


async def test_a_message_never_repeats_more_than_a_line_of_what_was_sent(it: Running) -> None:
    response = await it.client.post(CHAT.path, json={**CHAT.request, "model": "x" * 9000})
    assert response.status_code == 404 and len(response.content) < 600
