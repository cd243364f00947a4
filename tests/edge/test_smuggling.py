"""What must not pass by a side door: trailers, second replies, headers of another's choosing."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest

from tests.edge.test_relay import ANSWER, CHAT, answering
from tests.support.running import KEY, configuration, running
from tests.support.scripted import reply, scripted


async def test_trailers_are_no_headers(tmp_path: Path) -> None:
    body = json.dumps(CHAT).encode()
    async with (
        scripted(answering(reply(b"{}"))) as backend,
        running(configuration(tmp_path, backend.url), tmp_path) as it,
    ):
        reader, writer = await asyncio.open_connection("127.0.0.1", it.port)
        writer.write(
            b"POST /v1/chat/completions HTTP/1.1\r\nhost: x\r\nx-session-id: mine\r\n"
            b"authorization: Bearer %b\r\ntransfer-encoding: chunked\r\n\r\n"
            b"%x\r\n%b\r\n0\r\nx-session-id: other\r\nx-late: 1\r\n\r\n"
            % (KEY.encode(), len(body), body)
        )
        assert (await reader.readline()).startswith(b"HTTP/1.1 200")
        writer.close()
        await writer.wait_closed()
        sent = backend.requests[0].headers
        assert sent["x-session-id"] == "mine" and "x-late" not in sent


async def test_a_second_reply_in_the_same_read_is_not_the_client_s(tmp_path: Path) -> None:
    good, stray = reply(json.dumps(ANSWER).encode()), reply(b'{"of": "someone else"}')
    async with (
        scripted(answering(good + stray)) as backend,
        running(configuration(tmp_path, backend.url), tmp_path) as it,
    ):
        for _ in range(3):
            answer = await it.client.post("/v1/chat/completions", json=CHAT)
            assert (answer.status_code, answer.json()) == (200, ANSWER)
        assert backend.connections == 3, "a connection with stray bytes was used again"


async def test_who_may_read_an_answer_in_a_browser_is_the_gateways_to_say(tmp_path: Path) -> None:
    raw = reply(
        b"{}", headers="content-type: application/json\r\naccess-control-allow-origin: *\r\n"
    )
    async with scripted(answering(raw)) as backend:
        settings = configuration(tmp_path, backend.url)
        settings["server"]["cors_origins"] = ["https://ours.example"]
        async with running(settings, tmp_path) as it:
            headers = {"origin": "https://ours.example"}
            answer = await it.client.post("/v1/chat/completions", json=CHAT, headers=headers)
            allowed = answer.headers.get_list("access-control-allow-origin")
            assert allowed == ["https://ours.example"]
            answer = await it.client.post("/v1/chat/completions", json=CHAT)
            assert "access-control-allow-origin" not in answer.headers


async def test_a_second_connection_header_counts_too(tmp_path: Path) -> None:
    async with (
        scripted(answering(reply(b"{}"))) as backend,
        running(configuration(tmp_path, backend.url), tmp_path) as it,
    ):
        headers = [("connection", "x-one"), ("connection", "x-two"), ("x-one", "1"), ("x-two", "2")]
        await it.client.post("/v1/chat/completions", json=CHAT, headers=headers)
        assert not {"x-one", "x-two"} & backend.requests[0].headers.keys()


async def test_a_response_of_one_model_does_not_steer_another(tmp_path: Path) -> None:
    made = reply(b'{"id": "resp_1", "object": "response", "model": "m"}')
    async with scripted(answering(made)) as one, scripted(answering(made)) as two:
        settings = configuration(tmp_path, one.url, two.url)
        arms = settings["models"]["m"]["arms"]
        settings["models"] = {
            "m": {"arms": {"a": {**arms["a0"]}}},
            "n": {"arms": {"a": {**arms["a1"]}}},
        }
        async with running(settings, tmp_path) as it:
            asked = {"input": "hi", "model": "m"}
            await it.client.post("/v1/responses", json=asked)
            crossed = {"input": "hi", "model": "n", "previous_response_id": "resp_1"}
            answer = await it.client.post("/v1/responses", json=crossed)
            assert answer.status_code == 404
            assert answer.json()["error"]["code"] == "previous_response_not_found"
            assert not two.requests


@pytest.mark.parametrize("path", ["/v1/metrics", "/api/metrics", "//metrics", "/v1/admin/v1/keys"])
async def test_operations_have_one_spelling(tmp_path: Path, path: str) -> None:
    """A proxy in front keeps the world out of `/metrics` and `/admin` by their names."""
    async with running(configuration(tmp_path, "http://127.0.0.1:9"), tmp_path) as it:
        assert (await it.client.get(it.url + path)).status_code == 404
        assert (await it.client.get("/metrics")).status_code == 200
