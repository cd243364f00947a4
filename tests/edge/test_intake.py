"""What a request's body becomes on its way to the backend."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.edge.test_relay import CHAT, answering
from tests.support.running import configuration, running
from tests.support.scripted import reply, scripted

MESSAGES = {"model": "m", "messages": [{"role": "user", "content": "hi"}]}
RESPONSES = {"model": "m", "input": "hi"}


async def sent(
    tmp_path: Path, path: str, body: dict[str, Any], *, key: Any = None, **model: Any
) -> dict[str, Any]:
    """The body that reached the backend."""
    async with scripted(answering(reply(b"{}"))) as backend:
        settings = configuration(tmp_path, backend.url)
        settings["models"]["m"] |= model
        settings["keys"][0] |= key or {}
        async with running(settings, tmp_path) as it:
            response = await it.client.post(path, json=body)
            assert response.status_code == 200, response.text
            result: dict[str, Any] = json.loads(backend.requests[0].body)
            return result


@pytest.mark.parametrize(
    ("path", "body", "field"),
    [
        ("/v1/messages", MESSAGES, "max_tokens"),
        ("/v1/responses", RESPONSES, "max_output_tokens"),
    ],
)
async def test_a_model_s_cap_stands_in_for_one_that_was_not_sent(
    tmp_path: Path, path: str, body: dict[str, Any], field: str
) -> None:
    capped = {**body, field: 7}
    assert (await sent(tmp_path, path, body, max_output_tokens=4096))[field] == 4096
    assert (await sent(tmp_path, path, capped, max_output_tokens=4096))[field] == 7
    assert field not in await sent(tmp_path, path, body)


async def test_chat_gets_no_cap(tmp_path: Path) -> None:
    assert await sent(tmp_path, "/v1/chat/completions", CHAT, max_output_tokens=4096) == CHAT


async def test_fields_that_act_on_other_keys_requests_need_permission(tmp_path: Path) -> None:
    body = {**CHAT, "priority": -9, "kv_transfer_params": {"a": 1}, "cache_salt": "mine"}
    path = "/v1/chat/completions"
    assert await sent(tmp_path, path, body) == CHAT
    assert await sent(tmp_path, path, body, key={"engine_fields": True}) == body


async def test_a_salt_keeps_a_key_s_prefix_cache_its_own(tmp_path: Path) -> None:
    path = "/v1/chat/completions"
    forged = {**CHAT, "cache_salt": "another's"}
    salted = await sent(tmp_path, path, forged, key={"cache_salt": True})
    assert salted["cache_salt"] not in ("", "another's")


async def test_an_api_that_no_server_of_the_model_offers(tmp_path: Path) -> None:
    settings = configuration(tmp_path, "http://127.0.0.1:9")
    settings["backends"]["b0"]["apis"] = ["embeddings"]
    async with running(settings, tmp_path) as it:
        response = await it.client.post("/v1/messages", json=MESSAGES)
        assert response.status_code == 404
        assert response.json()["error"]["type"] == "not_found_error"
        assert "No server of model `m` offers /v1/messages" in response.text


async def test_only_servers_that_offer_an_api_are_asked_for_it(tmp_path: Path) -> None:
    async with scripted(answering(reply(b"{}"))) as one, scripted(answering(reply(b"{}"))) as two:
        settings = configuration(tmp_path, one.url, two.url)
        settings["backends"]["b0"]["apis"] = ["embeddings"]
        settings["models"]["m"]["arms"] = {"a": {"weight": 1, "backends": ["b0", "b1"]}}
        async with running(settings, tmp_path) as it:
            for n in range(8):
                headers = {"x-session-id": str(n)}
                response = await it.client.post("/v1/messages", json=MESSAGES, headers=headers)
                assert response.headers["x-gateway-backend"] == "b1"
        assert (len(one.requests), len(two.requests)) == (0, 8)
