"""Stored responses: read again, cancelled and continued where they were made."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from tests.support.running import Way, configuration, running
from tests.support.scripted import Received, reply, scripted

OTHER_KEY = "sk-other-0123456789abcdefghijk"
ASKED = {"model": "nick", "input": "hi"}


def keeping(name: str) -> Any:
    """A backend that answers with a response of its own, and shows what it was asked for."""

    async def script(request: Received, writer: asyncio.StreamWriter) -> None:
        body = {
            "id": f"resp_{name}", "object": "response", "model": "m", "by": name,
            "asked": f"{request.method} {request.target}", "status": "completed",
            "usage": {"input_tokens": 3, "output_tokens": 4},
        }  # fmt: skip
        writer.write(reply(json.dumps(body).encode()))

    return script


async def test_a_response_belongs_to_its_backend_and_its_key(way: Way, tmp_path: Path) -> None:
    async with scripted(keeping("b0")) as one, scripted(keeping("b1")) as two:
        settings = configuration(tmp_path, one.url, two.url)
        settings["models"]["m"]["aliases"] = ["nick"]
        settings["keys"].append({"name": "other", "key": OTHER_KEY})
        async with running(settings, tmp_path, way=way) as it:
            for session in range(6):
                headers = {"x-session-id": str(session)}
                made = (await it.client.post("/v1/responses", json=ASKED, headers=headers)).json()
                path = f"/v1/responses/{made['id']}"
                again = (await it.client.get(path)).json()
                assert (again["by"], again["asked"]) == (made["by"], f"GET {path}")
                ended = (await it.client.post(f"/api{path}/cancel")).json()
                assert (ended["by"], ended["asked"]) == (made["by"], f"POST {path}/cancel")
                follow_up = {**ASKED, "previous_response_id": made["id"]}
                next_one = await it.client.post("/v1/responses", json=follow_up)
                assert next_one.json()["by"] == made["by"], "another session, the same backend"
            foreign = {"authorization": f"Bearer {OTHER_KEY}"}
            refused = await it.client.get(path, headers=foreign)
            assert refused.status_code == 404
            assert refused.json()["error"]["code"] == "response_not_found"
            assert {made["by"]} < {"b0", "b1"}
            assert (await it.client.get("/v1/responses/resp_x")).status_code == 404
            record = await it.record(26)
            assert {one.forced for one in it.records if one.path != "/v1/responses"} == {
                True,
                False,
            }
            assert record.outcome == "rejected"


@pytest.mark.parametrize("method", ["DELETE", "PUT"])
async def test_other_methods_are_not_served(tmp_path: Path, method: str) -> None:
    async with running(configuration(tmp_path, "http://127.0.0.1:9"), tmp_path) as it:
        answer = await it.client.request(method, "/v1/responses/resp_1")
        assert answer.status_code == 404
