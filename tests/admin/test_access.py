from __future__ import annotations

import httpx
import pytest

from tests.admin.fake import ADMIN_KEY, CLIENT_KEY, READ_KEY, FakeControl, settings

EVERY_ROUTE = [
    ("GET", "models"),
    ("GET", "models/llama"),
    ("PUT", "models/llama/weights"),
    ("GET", "backends"),
    ("PUT", "backends/vllm-a"),
    ("GET", "requests/req_1"),
    ("GET", "keys"),
    ("GET", "history"),
    ("POST", "reload"),
    ("GET", "openapi.json"),
]


@pytest.mark.parametrize(("method", "path"), EVERY_ROUTE)
async def test_without_an_admin_key_every_route_says_how_to_set_one(
    client: httpx.AsyncClient, control: FakeControl, method: str, path: str
) -> None:
    control.settings = settings(admin={})
    # Also where what is sent equals what is not set.
    for key in ("", "Bearer ", f"Bearer {ADMIN_KEY}"):
        reply = await client.request(method, path, headers={"authorization": key})
        assert reply.status_code == 403
        assert "Set admin.key" in reply.json()["error"]["message"]


@pytest.mark.parametrize(("method", "path"), EVERY_ROUTE)
@pytest.mark.parametrize("key", ["", CLIENT_KEY, ADMIN_KEY[:-1], f"{ADMIN_KEY}x", "é"])
async def test_a_wrong_key_is_refused_before_the_body_is_read(
    client: httpx.AsyncClient, method: str, path: str, key: str
) -> None:
    headers = {b"authorization": f"Bearer {key}".encode("latin-1")}
    reply = await client.request(method, path, headers=headers, content=b"{no json")
    assert reply.status_code == 401
    assert reply.json()["error"]["code"] == "invalid_api_key"
    assert "Authorization: Bearer" in reply.json()["error"]["message"]


async def test_the_read_key_reads_and_does_not_write(
    client: httpx.AsyncClient, control: FakeControl
) -> None:
    client.headers["authorization"] = f"Bearer {READ_KEY}"
    assert (await client.get("models")).status_code == 200
    for method, path in EVERY_ROUTE:
        if method != "GET":
            reply = await client.request(method, path, json={"enabled": False})
            assert reply.status_code == 403, path
            assert "read_key may only read" in reply.json()["error"]["message"]
    assert control.switched == []


async def test_the_key_may_come_as_x_api_key(client: httpx.AsyncClient) -> None:
    del client.headers["authorization"]
    reply = await client.get("models", headers={"x-api-key": ADMIN_KEY})
    assert reply.status_code == 200


async def test_a_key_changed_by_a_reload_counts_at_once(
    client: httpx.AsyncClient, control: FakeControl
) -> None:
    control.settings = settings(admin={"key": "sk-other-0123456789abcdefghij"})
    assert (await client.get("models")).status_code == 401


async def test_the_description_is_behind_the_key(client: httpx.AsyncClient) -> None:
    paths = (await client.get("openapi.json")).json()["paths"]
    assert "/admin/v1/models/{model}/weights" in paths
    answer = paths["/admin/v1/keys"]["get"]["responses"]["200"]["content"]["application/json"]
    assert answer["schema"]["items"]["$ref"].endswith("KeyView")
