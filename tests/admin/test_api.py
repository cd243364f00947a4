from __future__ import annotations

from collections import Counter

import httpx
import pytest

from gateway.errors import ConfigError
from gateway.records import EngineFacts, NoToken, Outcome, Refusal, Timeline
from gateway.telemetry.by_key import KeyUse
from tests.admin.fake import CLIENT_KEY, FakeControl, record, settings

WEIGHTS = "models/llama/weights"


async def test_a_model_with_its_arms_shares_and_backends(client: httpx.AsyncClient) -> None:
    model = (await client.get("models/llama")).json()
    assert {
        name: model[name] for name in ("upstream_model", "revision", "unit", "slo_ttft_ms")
    } == {
        "upstream_model": "meta-llama/Llama-3-70B",
        "revision": 0,
        "unit": "session",
        "slo_ttft_ms": 500,
    }
    arms = [(arm["name"], arm["role"], arm["weight"], arm["share"]) for arm in model["arms"]]
    assert arms == [("chunk-512", "control", 90, 0.9), ("chunk-64", "canary", 10, 0.1)]
    assert [backend["name"] for arm in model["arms"] for backend in arm["backends"]] == [
        "vllm-a",
        "vllm-b",
    ]


async def test_models_with_a_slash_and_by_alias(client: httpx.AsyncClient) -> None:
    assert [model["name"] for model in (await client.get("models")).json()] == [
        "llama",
        "org/small",
    ]
    assert (await client.get("models/org%2Fsmall")).json()["name"] == "org/small"
    assert (await client.get("models/gpt-4o-local")).json()["name"] == "llama"
    reply = await client.put("models/org%2Fsmall/weights", json={"weights": {"only": 5}})
    assert reply.json()["arms"][0]["weight"] == 5


@pytest.mark.parametrize("path", ["models/nope", "models/llama@chunk-64", "models/llama/nope"])
async def test_an_unknown_model_lists_those_there_are(client: httpx.AsyncClient, path: str) -> None:
    reply = await client.get(path)
    assert reply.status_code == 404
    assert "`llama`, `org/small`" in reply.json()["error"]["message"]


async def test_set_weights(client: httpx.AsyncClient, control: FakeControl) -> None:
    reply = await client.put(
        WEIGHTS,
        json={"weights": {"chunk-64": 30}, "revision": 0, "reason": "looks good"},
        headers={"x-gateway-actor": "alice"},
    )
    model = reply.json()
    assert model["revision"] == 1
    assert [(arm["weight"], arm["file_weight"]) for arm in model["arms"]] == [(90, 90), (30, 10)]
    assert [arm["share"] for arm in model["arms"]] == [0.75, 0.25]
    assert control.table.routes["llama"].weights == {"chunk-512": 90, "chunk-64": 30}
    (change,) = (await client.get("history")).json()
    assert change == {
        "model": "llama",
        "revision": 1,
        "at": "2023-11-14T22:13:20Z",
        "by": "alice",
        "reason": "looks good",
        "before": {"chunk-512": 90, "chunk-64": 10},
        "after": {"chunk-512": 90, "chunk-64": 30},
    }


async def test_who_sets_weights_without_a_name_is_the_api(
    client: httpx.AsyncClient, control: FakeControl
) -> None:
    await client.put(WEIGHTS, json={"weights": {"chunk-64": 30}})
    assert control.changes[0].by == "api"


async def test_a_stale_revision_is_a_conflict(
    client: httpx.AsyncClient, control: FakeControl
) -> None:
    body = {"weights": {"chunk-64": 30}, "revision": 0}
    assert (await client.put(WEIGHTS, json=body)).status_code == 200
    reply = await client.put(WEIGHTS, json=body)
    assert reply.status_code == 409
    assert "revision 1" in reply.json()["error"]["message"]
    assert len(control.changes) == 1


@pytest.mark.parametrize(
    ("body", "param", "part"),
    [
        (b"{", None, "not JSON"),
        (b"[]", None, "JSON object"),
        (b"", None, "JSON object"),
        (b"{}", "weights", "weights: field required"),
        (b'{"weights": {}}', "weights", "at least 1 item"),
        (b'{"weights": {"chunk-64": -1}}', "weights.chunk-64", "greater than or equal to 0"),
        (b'{"weights": {"chunk-64": "9"}}', "weights.chunk-64", "valid number"),
        (b'{"weights": {"chunk-64": true}}', "weights.chunk-64", "valid number"),
        (b'{"weights": {"chunk-64": NaN}}', "weights.chunk-64", "finite number"),
        (b'{"weights": {"chunk-64": 1}, "revison": 4}', "revison", "no such field"),
        (b'{"weights": {"chunk-64": 1}, "revision": "4"}', "revision", "valid integer"),
        (b'{"weights": {"chunk-63": 1}}', "weights", "no arm `chunk-63`"),
    ],
)
async def test_a_faulty_body_is_told_by_field(
    client: httpx.AsyncClient, control: FakeControl, body: bytes, param: str | None, part: str
) -> None:
    headers = {"content-type": "application/json"}
    reply = await client.put(WEIGHTS, content=body, headers=headers)
    assert reply.status_code == 400
    error = reply.json()["error"]
    assert (error["param"], error["type"]) == (param, "invalid_request_error")
    assert part in error["message"]
    assert control.changes == []


async def test_every_fault_of_a_body_is_told(client: httpx.AsyncClient) -> None:
    body = {"weights": {"chunk-512": -1, "chunk-64": "x"}, "why": ""}
    message = (await client.put(WEIGHTS, json=body)).json()["error"]["message"]
    assert all(name in message for name in ("weights.chunk-512:", "weights.chunk-64:", "why:"))


async def test_a_backend_is_taken_out_and_put_back(
    client: httpx.AsyncClient, control: FakeControl
) -> None:
    reply = await client.put(
        "backends/vllm-b", json={"enabled": False}, headers={"x-gateway-actor": "bob"}
    )
    assert (reply.json()["enabled"], reply.json()["usable"]) == (False, False)
    assert not control.table.backends["vllm-b"].usable()
    reply = await client.put("backends/vllm-b", json={"enabled": True})
    assert reply.json()["usable"] is True
    assert control.switched == [("vllm-b", False, "bob"), ("vllm-b", True, "api")]


@pytest.mark.parametrize("body", [{}, {"enabled": "no"}, {"enabled": 0}, {"enabled": None}])
async def test_enabled_is_a_boolean(client: httpx.AsyncClient, body: dict[str, object]) -> None:
    reply = await client.put("backends/vllm-b", json=body)
    assert (reply.status_code, reply.json()["error"]["param"]) == (400, "enabled")


async def test_backends_with_health_and_engine_facts(
    client: httpx.AsyncClient, control: FakeControl
) -> None:
    backend = control.table.backends["vllm-a"]
    backend.up, backend.outstanding = False, 3
    backend.facts = EngineFacts("0.32.0", 8192, frozenset({"responses", "chat"}))
    first, second, _ = (await client.get("backends")).json()
    assert first["engine"]["max_num_batched_tokens"] == 512 and second["engine"] is None
    assert (first["up"], first["usable"], first["outstanding"]) == (False, False, 3)
    assert (first["engine_version"], first["max_model_len"]) == ("0.32.0", 8192)
    assert (first["apis"], second["apis"]) == (["chat", "responses"], None)
    assert (second["model"], second["arm"], second["circuit"]) == ("llama", "chunk-64", "closed")


async def test_an_unknown_backend_lists_those_there_are(client: httpx.AsyncClient) -> None:
    reply = await client.put("backends/vllm-z", json={"enabled": False})
    assert reply.status_code == 404
    assert "`vllm-a`, `vllm-b`, `vllm-c`" in reply.json()["error"]["message"]


async def test_why_a_request_went_where_it_did(
    client: httpx.AsyncClient, control: FakeControl
) -> None:
    control.records["req_1"] = record(tried=("vllm-b",), arm="chunk-64")
    found = (await client.get("requests/req_1")).json()
    assert found["ttft"] == {"total_ms": 325, "queue_ms": 20, "gateway_ms": 5, "engine_ms": 300}
    assert found["marks"]["first_token_ms"] == 335
    assert (found["assigned_arm"], found["arm"], found["tried"]) == (
        "chunk-512",
        "chunk-64",
        ["vllm-b"],
    )
    assert (found["weights"], found["revision"]) == ({"chunk-512": 90, "chunk-64": 10}, 3)
    assert found["usage"] == {"prompt": 1600, "cached": 1024, "completion": 40, "exact": True}


async def test_no_token_no_ttft(client: httpx.AsyncClient, control: FakeControl) -> None:
    control.records["req_1"] = record(
        timeline=Timeline(50.0, 50.01, 50.03, 50.04),
        outcome=Outcome.TIMEOUT,
        no_token=NoToken.TIMEOUT,
        status=504,
        usage=None,
    )
    found = (await client.get("requests/req_1")).json()
    assert (found["ttft"], found["usage"], found["no_token"]) == (None, None, "timeout")


async def test_an_unknown_request_says_where_to_look(client: httpx.AsyncClient) -> None:
    reply = await client.get("requests/req_nope")
    assert reply.status_code == 404
    assert "x-request-id" in reply.json()["error"]["message"]


async def test_keys_by_name_with_limits_and_use(
    client: httpx.AsyncClient, control: FakeControl
) -> None:
    ((key, _, _),) = control.standings()
    control.limiter.admit(key)
    refused = Counter[str]({Refusal.REQUESTS_PER_MINUTE: 3})
    control.used["dev"] = KeyUse(40, 64_000, 40_000, 1_500, refused)
    reply = await client.get("keys")
    assert reply.json() == [
        {
            "name": "dev",
            "models": ["*"],
            "arms": ["chunk-64"],
            "requests_per_minute": 600,
            "tokens_per_minute": None,
            "max_concurrency": None,
            "running": 1,
            "requests_left": 599,
            "tokens_left": None,
            "used": {
                "requests": 40,
                "prompt_tokens": 64_000,
                "cached_prompt_tokens": 40_000,
                "completion_tokens": 1_500,
                "refused": {"requests_per_minute": 3},
            },
        }
    ]


async def test_history_of_one_model_the_latest_first(
    client: httpx.AsyncClient, control: FakeControl
) -> None:
    for weight in (20, 30):
        await client.put(WEIGHTS, json={"weights": {"chunk-64": weight}})
    await client.put("models/org/small/weights", json={"weights": {"only": 2}})
    revisions = [one["revision"] for one in (await client.get("history?model=llama")).json()]
    assert revisions == [2, 1]
    assert len((await client.get("history?limit=2")).json()) == 2
    assert (await client.get("history?limit=0")).json()["error"]["param"] == "limit"
    assert (await client.get("history?model=nope")).status_code == 404


async def test_a_reload_says_what_changed(client: httpx.AsyncClient, control: FakeControl) -> None:
    assert (await client.post("reload")).json() == {"changed": []}
    control.next_settings = settings(keepalive_interval=10)
    assert (await client.post("reload")).json() == {"changed": ["keepalive_interval: 15 → 10"]}


async def test_a_bad_reload_lists_every_fault(
    client: httpx.AsyncClient, control: FakeControl
) -> None:
    control.next_settings = ConfigError(["server.port: must be a port", "models: missing"])
    reply = await client.post("reload")
    assert reply.status_code == 400
    error = reply.json()["error"]
    assert error["code"] == "invalid_configuration"
    assert "server.port: must be a port\n  models: missing" in error["message"]


async def test_no_answer_holds_a_secret(client: httpx.AsyncClient, control: FakeControl) -> None:
    control.records["req_1"] = record()
    control.next_settings = settings(
        keys=[{"name": "dev", "key": "sk-next-0123456789abcdefghijkl"}]
    )
    answers = [
        (await client.get(path)).text
        for path in ("models", "backends", "keys", "history", "requests/req_1")
    ]
    answers.append((await client.post("reload")).text)
    for secret in ("sk-backend", CLIENT_KEY, "sk-admin", "sk-read", "sk-next"):
        assert not any(secret in answer for answer in answers), secret
