"""What bad input gets: a status, the API's own error shape, and words that say what to do."""

from __future__ import annotations

import asyncio
import gzip
import json
from collections.abc import AsyncIterator
from typing import Any

import pytest
import pytest_asyncio
import zstandard

from gateway.records import Outcome
from tests.support.apis import CHAT, DIALECTS, MESSAGES, Dialect
from tests.support.running import KEY, Running, Way, configuration, running
from tests.support.scripted import Received, ScriptedBackend, chunk, reply, scripted
from tests.support.wire import head, post, wire

pytestmark = pytest.mark.asyncio(loop_scope="module")

MIB = 2**20
POOR = "sk-poor-0123456789abcdefghijkl"
NONE = "sk-none-0123456789abcdefghijkl"


@pytest_asyncio.fixture(scope="module", loop_scope="module", params=["protocol", "asgi"])
async def shared(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[tuple[Running, ScriptedBackend]]:
    way: Way = request.param
    tmp_path = tmp_path_factory.mktemp("site")

    async def script(request: Received, writer: asyncio.StreamWriter) -> None:
        writer.write(reply(b"{}"))

    async with scripted(script) as backend:
        settings = configuration(tmp_path, backend.url)
        arms = {"a1": {"weight": 1, "backends": ["b1"]}}
        settings["models"] |= {"secret-model": {"arms": arms}}
        settings["backends"] |= {"b1": {"url": backend.url}}
        settings["server"] |= {"max_body_mib": 1}
        settings["keys"] = [
            {"name": "dev", "key": KEY, "models": ["m", "o*"], "arms": "none"},
            {"name": "poor", "key": POOR, "requests_per_minute": 2, "tokens_per_minute": 100},
            {"name": "none", "key": NONE, "models": ["other"]},
        ]
        async with running(settings, tmp_path, way=way) as it:
            yield it, backend


def openai_error(response: Any) -> dict[str, Any]:
    error: dict[str, Any] = response.json()["error"]
    assert error.keys() == {"message", "type", "param", "code"}
    return error


def told(response: Any, dialect: Dialect) -> dict[str, Any]:
    """The error in the shape of the API, checked for what every error has."""
    assert response.headers["content-type"] == "application/json"
    assert response.headers["x-request-id"].startswith("req_")
    if dialect is not MESSAGES:
        return openai_error(response)
    body = response.json()
    assert body["type"] == "error"
    assert body["request_id"] == response.headers["x-request-id"]
    error: dict[str, Any] = body["error"]
    assert error.keys() == {"type", "message"}
    return error


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


@pytest.mark.parametrize("method", ["GET", "POST", "DELETE"])
async def test_an_unknown_route_is_told_the_base_urls(it: Running, method: str) -> None:
    response = await it.client.request(method, "/v1/chat/completion", json=CHAT.request)
    assert response.status_code == 404
    message = openai_error(response)["message"]
    assert f"There is no {method} /chat/completion here." in message
    assert f"OpenAI SDKs and Codex: {it.url}/v1;" in message
    assert f"Claude Code and the Anthropic SDKs: {it.url};" in message


async def test_an_unknown_route_of_an_anthropic_client(it: Running) -> None:
    headers = {"anthropic-version": "2023-06-01"}
    response = await it.client.post("/v1/message", json=MESSAGES.request, headers=headers)
    assert response.status_code == 404
    assert told(response, MESSAGES)["type"] == "not_found_error"


@pytest.mark.parametrize("dialect", DIALECTS, ids=lambda one: one.api)
async def test_another_method(it: Running, dialect: Dialect) -> None:
    response = await it.client.get(dialect.path)
    assert response.status_code == 405
    assert f"GET is not allowed on {dialect.path}; use POST." in told(response, dialect)["message"]


@pytest.mark.parametrize("path", ["/v1/responses", "/v1/chat/completions", "/", "/nowhere"])
async def test_a_websocket_upgrade_is_told_to_use_http(it: Running, path: str) -> None:
    """Codex falls back at once on 426; 404 and 405 cost it seven tries."""
    async with wire(it.port) as one:
        one.send(
            f"GET {path} HTTP/1.1\r\nhost: x\r\nconnection: keep-alive, Upgrade\r\n"
            "upgrade: websocket\r\nsec-websocket-key: x\r\n\r\n".encode()
        )
        answer = await one.answer()
        assert answer.status == 426
        assert answer.json()["error"]["code"] == "upgrade_required"
        assert "use HTTP requests" in answer.json()["error"]["message"]
        assert await one.closed() == b""


async def test_a_body_that_says_it_is_too_large_is_refused_before_it_is_sent(it: Running) -> None:
    async with wire(it.port) as one:
        one.send(head(MESSAGES.path, f"content-length: {MIB + 1}\r\n"))
        answer = await one.answer(within=1)
        assert answer.status == 413
        assert answer.json()["error"]["type"] == "request_too_large"
        assert "larger than the 1 MiB" in answer.json()["error"]["message"]
    assert (await it.record()).outcome is Outcome.REJECTED


async def test_a_chunked_body_that_becomes_too_large(it: Running, backend: ScriptedBackend) -> None:
    async with wire(it.port) as one:
        one.send(head(headers="transfer-encoding: chunked\r\n"))
        for _ in range(17):
            one.send(chunk(b" " * 65536))
        answer = await one.answer(within=1)
        assert answer.status == 413
        assert "larger than the 1 MiB" in answer.json()["error"]["message"]
    assert not backend.requests


@pytest.mark.parametrize("coding", ["gzip", "zstd", "deflate"])
async def test_a_body_that_is_too_large_once_unpacked(
    it: Running, backend: ScriptedBackend, coding: str
) -> None:
    bomb = json.dumps({**CHAT.request, "x": " " * (8 * MIB)}).encode()
    packed = zstandard.compress(bomb) if coding == "zstd" else gzip.compress(bomb)
    headers = {"content-encoding": coding}
    response = await it.client.post(CHAT.path, content=packed, headers=headers)
    assert response.status_code == 413
    assert "larger than the 1 MiB" in openai_error(response)["message"]
    assert not backend.requests


async def test_a_body_of_exactly_the_limit_passes(it: Running, backend: ScriptedBackend) -> None:
    body = json.dumps({**CHAT.request, "x": ""})
    body = body.replace('""', '"' + " " * (MIB - len(body)) + '"')
    response = await it.client.post(CHAT.path, content=body)
    assert response.status_code == 200
    assert len(backend.requests[0].body) == MIB


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


async def test_a_client_that_is_refused_early_may_go_on_sending(it: Running) -> None:
    """It must get to read the answer, not a connection reset."""
    async with wire(it.port) as one:
        one.send(head(headers=f"content-length: {2 * MIB}\r\n").replace(KEY.encode(), b"sk-bad"))
        for _ in range(32):
            one.send(b" " * 65536)
            await asyncio.sleep(0)
        assert (await one.answer()).status == 401


async def test_the_next_request_on_the_connection_after_a_refusal(it: Running) -> None:
    async with wire(it.port) as one:
        for body in (b"{", b'{"model":7}'):
            one.send(post(body))
            assert (await one.answer()).status == 400
        one.send(post(CHAT.request))
        assert (await one.answer()).status == 200
