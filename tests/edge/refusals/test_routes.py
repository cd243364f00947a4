"""Routes, methods and protocols that are not there: which ones are."""

from __future__ import annotations

import pytest

from tests.edge.refusals.told import openai_error, told
from tests.support.apis import CHAT, DIALECTS, MESSAGES, Dialect
from tests.support.running import Running
from tests.support.wire import wire

pytestmark = pytest.mark.asyncio(loop_scope="module")


@pytest.mark.parametrize("method", ["GET", "POST", "DELETE"])
async def test_an_unknown_route_is_told_the_base_urls(it: Running, method: str) -> None:
    response = await it.client.request(method, "/v1/chat/completion", json=CHAT.request)
    assert response.status_code == 404
    message = openai_error(response)["message"]
    assert f"There is no {method} /v1/chat/completion here." in message
    assert f"OpenAI SDKs and Codex: {it.url}/v1;" in message
    assert f"Claude Code and the Anthropic SDKs: {it.url};" in message


@pytest.mark.parametrize(
    "path", ["/chat/completion", "/api/v1/v1/chat/completion/", "/v1/chat%2Fcompletion"]
)
async def test_an_unknown_route_is_quoted_as_it_was_sent(it: Running, path: str) -> None:
    response = await it.client.post(path, json=CHAT.request)
    assert f"There is no POST {path} here." in openai_error(response)["message"]


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


async def test_another_method_on_a_path_that_is_not_below_v1(it: Running) -> None:
    response = await it.client.get("/tokenize")
    assert "GET is not allowed on /tokenize; use POST." in openai_error(response)["message"]


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
