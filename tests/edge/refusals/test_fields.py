"""Bodies and fields that are wrong: told by name, in the API's own shape, and to no backend."""

from __future__ import annotations

import json
from typing import Any

import pytest

from gateway.records import Outcome
from tests.edge.refusals.told import told
from tests.support.apis import CHAT, DIALECTS, MESSAGES, Dialect
from tests.support.running import Running
from tests.support.scripted import ScriptedBackend

pytestmark = pytest.mark.asyncio(loop_scope="module")


@pytest.mark.parametrize("dialect", DIALECTS, ids=lambda one: one.api)
@pytest.mark.parametrize(
    ("body", "says", "param"),
    [
        (b"", "is empty", None),
        (b"{", "not valid JSON", None),
        (b"model=m&stream=true", "not valid JSON", None),
        (b"[]", "must be a JSON object", None),
        (b'{"x":"\xff"}', "not valid UTF-8", None),
        ({"model": None}, "`model` must be a non-empty string", "model"),
        ({"model": 7}, "`model` must be a non-empty string", "model"),
        ({"stream": "yes"}, "`stream` must be true or false", "stream"),
        ({"stream_options": 1}, "`stream_options` must be an object", "stream_options"),
    ],
)
async def test_what_is_wrong_is_named(
    it: Running,
    backend: ScriptedBackend,
    dialect: Dialect,
    body: bytes | dict[str, Any],
    says: str,
    param: str | None,
) -> None:
    content = body if isinstance(body, bytes) else json.dumps({**dialect.request, **body})
    response = await it.client.post(dialect.path, content=content)
    error = told(response, dialect)
    assert response.status_code == 400
    assert says in error["message"]
    assert error["type"] == "invalid_request_error"
    assert error.get("param") == (param if dialect is not MESSAGES else None)
    record = await it.record()
    assert (record.status, record.outcome) == (400, Outcome.REJECTED)
    assert not backend.requests


@pytest.mark.parametrize("dialect", DIALECTS, ids=lambda one: one.api)
async def test_no_model(it: Running, dialect: Dialect) -> None:
    request = {name: value for name, value in dialect.request.items() if name != "model"}
    response = await it.client.post(dialect.path, json=request)
    assert response.status_code == 400
    assert "`model` is missing; name one that GET /v1/models lists" in response.text


@pytest.mark.parametrize(
    ("dialect", "field", "value"),
    [
        (CHAT, "messages", "hi"),
        (CHAT, "messages", {"role": "user"}),
        (MESSAGES, "messages", None),
        (DIALECTS[1], "prompt", 5),
        (DIALECTS[3], "input", {"a": 1}),
    ],
)
async def test_the_field_that_holds_the_prompt(
    it: Running, dialect: Dialect, field: str, value: object
) -> None:
    response = await it.client.post(dialect.path, json={**dialect.request, field: value})
    assert response.status_code == 400
    assert told(response, dialect)["message"].startswith(f"`{field}` must be a ")
