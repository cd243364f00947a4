"""The routes that are not hot, as clients, load balancers and Prometheus find them."""

from __future__ import annotations

import secrets
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx
import pytest
import pytest_asyncio

from gateway import __version__
from tests.support.running import KEY, Running, configuration, running

pytestmark = pytest.mark.asyncio(loop_scope="module")

PLAIN_KEY = "sk-" + secrets.token_urlsafe(32)
METRICS_KEY = "sk-" + secrets.token_urlsafe(32)
ORIGIN = "https://console.example.com"
NOWHERE = "http://127.0.0.1:9"


def _settings(folder: Path) -> dict[str, Any]:
    settings = configuration(folder, NOWHERE, NOWHERE + "/b")
    settings["server"]["cors_origins"] = [ORIGIN]
    settings["models"]["m"] |= {"aliases": ["gpt-4o-local", "claude-*"], "context_window": 4096}
    settings["models"]["org/n"] = {"arms": {"only": {"weight": 1, "backends": ["n0"]}}}
    settings["backends"]["n0"] = {"url": NOWHERE + "/n"}
    settings["keys"].append(
        {"name": "plain", "key": PLAIN_KEY, "models": ["org/*"], "arms": "none"}
    )
    return settings


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def it(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Running]:
    folder = tmp_path_factory.mktemp("cold")
    async with running(_settings(folder), folder) as it:
        yield it


def as_plain(**headers: str) -> dict[str, str]:
    return {"authorization": f"Bearer {PLAIN_KEY}", **headers}


# Models


async def test_models_in_openais_shape(it: Running) -> None:
    answer = (await it.client.get("/v1/models")).json()
    assert answer["object"] == "list"
    first, second, third = answer["data"]
    assert first == {
        "id": "m",
        "object": "model",
        "created": 0,
        "owned_by": "ttft-gateway",
        "context_window": 4096,
        "max_model_len": 4096,
    }
    assert second["id"] == "org/n"
    assert "context_window" not in second, "what is not known is not told"
    assert third == {**first, "id": "gpt-4o-local"}, "an alias, but no pattern"


async def test_models_in_anthropics_shape(it: Running) -> None:
    headers = {"anthropic-version": "2023-06-01", "x-api-key": KEY}
    answer = (await it.client.get("/v1/models", headers=headers)).json()
    assert answer == {
        "data": [
            {
                "type": "model",
                "id": name,
                "display_name": name,
                "created_at": "1970-01-01T00:00:00Z",
            }
            for name in ("m", "org/n", "gpt-4o-local")
        ],
        "has_more": False,
        "first_id": "m",
        "last_id": "gpt-4o-local",
    }


async def test_a_key_sees_its_own_models_only(it: Running) -> None:
    for headers in (as_plain(), as_plain(**{"anthropic-version": "2023-06-01"})):
        answer = (await it.client.get("/v1/models", headers=headers)).json()
        assert [one["id"] for one in answer["data"]] == ["org/n"]


@pytest.mark.parametrize("path", ["/v1/models", "/v1/models/m"])
async def test_models_need_a_key(it: Running, path: str) -> None:
    for sent in ({}, {"authorization": "Bearer sk-guess"}):
        async with httpx.AsyncClient(base_url=it.url, headers=sent, trust_env=False) as client:
            answer = await client.get(path)
        assert answer.status_code == 401
        assert answer.json()["error"]["code"] == "invalid_api_key"
        assert "sk-guess" not in answer.text


@pytest.mark.parametrize("name", ["m", "gpt-4o-local", "claude-sonnet-4", "m@a1", "org/n"])
async def test_one_model_is_named_as_it_was_asked_for(it: Running, name: str) -> None:
    answer = await it.client.get(f"/v1/models/{name}")
    assert (answer.status_code, answer.json()["id"]) == (200, name)
    assert answer.json().get("context_window") == (None if name == "org/n" else 4096)
    anthropic = {"anthropic-version": "2023-06-01"}
    answer = await it.client.get(f"/v1/models/{name}", headers=anthropic)
    assert (answer.json()["type"], answer.json()["id"]) == ("model", name)


@pytest.mark.parametrize(
    ("name", "headers", "offered"),
    [
        ("typo", {}, "`m`, `org/n`, `gpt-4o-local`"),
        ("m@typo", {}, "`m`, `org/n`, `gpt-4o-local`"),
        ("m", as_plain(), "`org/n`"),
        ("org/n@only", as_plain(), "`org/n`"),
    ],
)
async def test_a_model_that_requests_could_not_use_is_not_there(
    it: Running, name: str, headers: dict[str, str], offered: str
) -> None:
    answer = await it.client.get(f"/v1/models/{name}", headers=headers)
    assert answer.status_code == 404
    error = answer.json()["error"]
    assert (error["code"], error["param"]) == ("model_not_found", "model")
    assert error["message"].endswith(f"Models for this key: {offered}.")


# Base paths, and what is nowhere


@pytest.mark.parametrize("path", ["/", "/api", "/v1", "/api/v1", "/v1/v1", "/anthropic", "/api/"])
async def test_a_base_url_is_found_by_head(it: Running, path: str) -> None:
    answer = await it.client.head(path)
    assert (answer.status_code, answer.content) == (200, b"")


async def test_the_root_says_which_base_urls_there_are(it: Running) -> None:
    assert (await it.client.get("/", headers={"host": "llm.example.com"})).json() == {
        "service": "TTFT Gateway",
        "version": __version__,
        "openai_base_url": "http://llm.example.com/v1",
        "anthropic_base_url": "http://llm.example.com",
        "models": "http://llm.example.com/v1/models",
    }


async def test_an_unknown_route_names_the_right_base_url(it: Running) -> None:
    for answer in (await it.client.get("/v1/nothing"), await it.client.post("/v1/nothing")):
        assert answer.status_code == 404
        error = answer.json()["error"]
        assert error["code"] == "route_not_found"
        assert f"for OpenAI SDKs and Codex: {it.url}/v1;" in error["message"]
        assert answer.headers["x-request-id"].startswith("req_")
    anthropic = {"anthropic-version": "2023-06-01"}
    answer = await it.client.get("/nothing", headers=anthropic)
    assert answer.json()["error"]["type"] == "not_found_error"
    assert answer.json()["request_id"] == answer.headers["x-request-id"]


@pytest.mark.parametrize("path", ["/v1/chat/completions", "/v1/messages", "/tokenize"])
async def test_a_route_that_takes_post_only_says_so(it: Running, path: str) -> None:
    answer = await it.client.get(path)
    assert answer.status_code == 405
    assert "use POST" in answer.json()["error"]["message"]
    assert answer.headers["allow"] == "POST"


async def test_a_websocket_is_told_to_use_http(it: Running) -> None:
    upgrade = {"connection": "upgrade", "upgrade": "websocket", "sec-websocket-version": "13"}
    answer = await it.client.get("/v1/responses", headers=upgrade)
    assert (answer.status_code, answer.json()["error"]["code"]) == (426, "upgrade_required")


# Browsers


async def test_a_preflight_from_a_configured_origin_passes(it: Running) -> None:
    headers = {
        "origin": ORIGIN,
        "access-control-request-method": "POST",
        "access-control-request-headers": "authorization, content-type, x-session-id",
    }
    for path in ("/v1/chat/completions", "/v1/models"):
        answer = await it.client.options(path, headers=headers)
        assert answer.status_code == 200
        assert answer.headers["access-control-allow-origin"] == ORIGIN
        assert "POST" in answer.headers["access-control-allow-methods"]
        for name in ("authorization", "content-type", "x-session-id"):
            assert name in answer.headers["access-control-allow-headers"]


async def test_another_origin_is_allowed_nothing(it: Running) -> None:
    headers = {"origin": "https://evil.example", "access-control-request-method": "POST"}
    answers = [
        await it.client.options("/v1/chat/completions", headers=headers),
        await it.client.get("/v1/models", headers=headers),
        await it.client.post("/v1/chat/completions", headers=headers, json={}),
    ]
    assert answers[0].status_code == 400
    for answer in answers:
        assert "access-control-allow-origin" not in answer.headers


async def test_replies_of_hot_and_cold_routes_may_be_read_by_the_origin(it: Running) -> None:
    headers = {"origin": ORIGIN}
    for answer in (
        await it.client.get("/v1/models", headers=headers),
        await it.client.post("/v1/chat/completions", headers=headers, json={}),
    ):
        assert answer.headers["access-control-allow-origin"] == ORIGIN
        assert answer.headers["vary"].lower() == "origin"
        # Without it pages see neither the request's id nor how long to wait.
        assert answer.headers["access-control-expose-headers"] == "*"


# Operations


async def test_health_tells_that_the_process_lives(it: Running) -> None:
    answer = await it.client.get("/health", headers={"authorization": ""})
    assert (answer.status_code, answer.json()) == (200, {"status": "ok", "version": __version__})


async def test_ready_tells_each_models_state_and_turns_503_in_a_drain(it: Running) -> None:
    context = it.gateway.context
    context.table.backends["n0"].enabled = False
    answer = await it.client.get("/ready", headers={"authorization": ""})
    assert answer.status_code == 200
    body = answer.json()
    assert body["status"] == "ready"
    assert body["models"]["org/n"]["arms"] == {"only": {"backends": 1, "usable": 0, "serving": 0}}
    context.draining = True
    try:
        answer = await it.client.get("/ready")
        assert (answer.status_code, answer.json()["status"]) == (503, "draining")
    finally:
        context.draining = False


async def test_without_a_key_metrics_are_for_the_machine_itself(it: Running) -> None:
    answer = await it.client.get("/metrics", headers={"authorization": ""})
    assert answer.status_code == 200
    assert answer.headers["content-type"] == "text/plain; version=0.0.4; charset=utf-8"
    assert "gateway_arm_weight" in answer.text
    # A proxy on this machine speaks for somebody else.
    answer = await it.client.get("/metrics", headers={"x-forwarded-for": "203.0.113.7"})
    assert answer.status_code == 403
    assert "metrics.key" in answer.json()["error"]["message"]


async def test_with_a_key_metrics_are_for_whoever_has_it(tmp_path: Path) -> None:
    settings = configuration(tmp_path, NOWHERE, metrics={"key": METRICS_KEY})
    async with running(settings, tmp_path) as it:
        for sent, status in (
            ("", 401),
            (f"Bearer {KEY}", 401),
            (METRICS_KEY, 401),
            (f"Bearer {METRICS_KEY}x", 401),
            (f"Bearer {METRICS_KEY}", 200),
            (f"bearer {METRICS_KEY}", 200),
        ):
            answer = await it.client.get("/metrics", headers={"authorization": sent})
            assert answer.status_code == status, sent
        headers = {
            "authorization": f"Bearer {METRICS_KEY}",
            "x-forwarded-for": "203.0.113.7",
        }
        assert (await it.client.get("/metrics", headers=headers)).status_code == 200
