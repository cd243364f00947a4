"""Stored responses: read again, cancelled and continued where they were made."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from tests.support.apis import RESPONSES
from tests.support.running import Running, Way, configuration, running
from tests.support.scripted import SSE_HEAD, Received, chunk, reply, scripted
from tests.support.site import Script, answers, hangs_up, says, streams

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


def kept(made: Script, again: Script) -> Script:
    """A backend that makes a response, and tells it again in its own way."""

    async def script(request: Received, writer: asyncio.StreamWriter) -> None:
        await (made if request.method == "POST" else again)(request, writer)

    return script


async def make(it: Running) -> str:
    """Have a response made; returns its path."""
    made = (await it.client.post(RESPONSES.path, json=RESPONSES.request)).json()
    return f"{RESPONSES.path}/{made['id']}"


async def test_a_stored_response_is_streamed_again_from_where_its_client_lost_it(
    way: Way, tmp_path: Path
) -> None:
    rest, seen = RESPONSES.frames[4:], asyncio.Event()

    async def again(request: Received, writer: asyncio.StreamWriter) -> None:
        writer.write(SSE_HEAD + chunk(rest[0]))
        await seen.wait()
        writer.write(b"".join(chunk(frame) for frame in [*rest[1:], b""]))

    async with scripted(kept(answers(RESPONSES), again)) as backend:
        settings = configuration(tmp_path, backend.url)
        settings["models"]["m"] |= {"aliases": ["nick"], "experiment": {"slo_ttft_ms": 1}}
        async with running(settings, tmp_path, way=way) as it:
            path = await make(it)
            query = "stream=true&starting_after=3&include%5B%5D=a%2Fb"
            content = b""
            async with it.client.stream("GET", f"{path}?{query}") as response:
                assert response.headers["content-type"].startswith("text/event-stream")
                async for part in response.aiter_raw():
                    content += part
                    seen.set()
            assert content == b"".join(rest)
            assert backend.requests[-1].target == f"{path}?{query}"
            record = await it.record(2)
            assert (record.outcome, record.usage) == ("ok", None), "its tokens were charged before"
            assert (record.stream, record.timeline.first_token, record.no_token) == (
                False,
                None,
                None,
            ), "it tells nothing of an arm's time to first token"


@pytest.mark.parametrize(
    ("query", "streamed"),
    [("stream=1", True), ("stream=True", True), ("stream=false", False), ("upstream=true", False)],
)
async def test_what_comes_is_what_was_asked_for(tmp_path: Path, query: str, streamed: bool) -> None:
    """Engines that cannot stream it again answer at once; see `protocols.unstreamed`."""
    whole = says(reply(json.dumps(RESPONSES.reply).encode()))
    async with (
        scripted(kept(answers(RESPONSES), whole)) as backend,
        running(configuration(tmp_path, backend.url), tmp_path) as it,
    ):
        answer = await it.client.get(f"{await make(it)}?{query}")
        assert answer.headers["content-type"].startswith("text/event-stream") is streamed
        if not streamed:
            assert answer.json() == RESPONSES.reply


async def test_an_overlong_query_is_refused(tmp_path: Path) -> None:
    async with (
        scripted(answers(RESPONSES)) as backend,
        running(configuration(tmp_path, backend.url), tmp_path) as it,
    ):
        answer = await it.client.get(f"{await make(it)}?include={'x' * 1017}")
        assert answer.status_code == 400
        assert "1024 bytes" in answer.json()["error"]["message"]
        assert len(backend.requests) == 1


@pytest.mark.parametrize("again", [streams(then=hangs_up), hangs_up], ids=["cut", "unanswered"])
async def test_what_cannot_be_told_again_takes_no_backend_out(
    tmp_path: Path, again: Script
) -> None:
    """vLLM breaks off where a response was not made in the background: anyone can ask for that."""
    async with (
        scripted(kept(answers(RESPONSES), again)) as backend,
        running(configuration(tmp_path, backend.url), tmp_path) as it,
    ):
        path = await make(it)
        for _ in range(6):
            answer = await it.client.get(f"{path}?stream=true")
            assert answer.status_code == 502
        assert it.gateway.context.table.backends["b0"].circuit.closed


@pytest.mark.parametrize("method", ["DELETE", "PUT"])
async def test_other_methods_are_not_served(tmp_path: Path, method: str) -> None:
    async with running(configuration(tmp_path, "http://127.0.0.1:9"), tmp_path) as it:
        answer = await it.client.request(method, "/v1/responses/resp_1")
        assert answer.status_code == 404
