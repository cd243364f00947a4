"""A request and its answer through a whole gateway, by either writer, from scripted backends."""

from __future__ import annotations

import asyncio
import gzip
import json
from pathlib import Path
from typing import Any

import pytest
import zstandard

from gateway.records import NoToken, Outcome
from tests.support.patience import SLACK
from tests.support.running import KEY, Way, configuration, running
from tests.support.scripted import SSE_HEAD, Received, chunk, reply, scripted

CHAT = {"model": "m", "messages": [{"role": "user", "content": "hi"}]}
ANSWER = {
    "id": "c1",
    "object": "chat.completion",
    "model": "m",
    "choices": [{"index": 0, "message": {"role": "assistant", "content": "yo"}}],
    "usage": {
        "prompt_tokens": 7,
        "completion_tokens": 2,
        "total_tokens": 9,
        "prompt_tokens_details": {"cached_tokens": 4},
    },
}


def frame(delta: dict[str, Any] | None, finish: str | None = None, model: str = "m") -> bytes:
    choices = [{"index": 0, "delta": delta, "finish_reason": finish}] if delta is not None else []
    data: dict[str, Any] = {"id": "c1", "model": model, "choices": choices}
    if delta is None:
        data["usage"] = ANSWER["usage"]
    return b"data: " + json.dumps(data, separators=(",", ":")).encode() + b"\n\n"


FRAMES = [
    frame({"role": "assistant", "content": ""}),
    frame({"content": "a"}),
    frame({"content": "b"}),
    frame({}, "stop"),
    frame(None),
    b"data: [DONE]\n\n",
]


def streaming(frames: list[bytes], pause: float = 0.0) -> Any:
    async def script(request: Received, writer: asyncio.StreamWriter) -> None:
        writer.write(SSE_HEAD)
        for one in frames:
            writer.write(chunk(one))
            if pause:
                await writer.drain()
                await asyncio.sleep(pause)
        writer.write(chunk(b""))

    return script


def answering(data: bytes) -> Any:
    async def script(request: Received, writer: asyncio.StreamWriter) -> None:
        writer.write(data)

    return script


async def test_a_whole_answer(way: Way, tmp_path: Path) -> None:
    raw = reply(
        json.dumps(ANSWER).encode(),
        headers="content-type: application/json\r\nserver: secret\r\nx-gateway-arm: forged\r\n"
        "x-engine: kept\r\nset-cookie: a=b\r\n",
    )
    async with (
        scripted(answering(raw)) as backend,
        running(configuration(tmp_path, backend.url), tmp_path, way=way) as it,
    ):
        response = await it.client.post("/v1/chat/completions", json=CHAT)
        assert response.status_code == 200, response.text
        assert response.json() == ANSWER
        assert response.headers["x-gateway-arm"] == "a0"
        assert response.headers["x-gateway-backend"] == "b0"
        assert response.headers["x-engine"] == "kept"
        assert "server" not in response.headers or response.headers["server"] == "uvicorn"
        assert "set-cookie" not in response.headers
        record = await it.record()
        assert response.headers["x-request-id"] == record.id
        assert backend.requests[0].headers["x-request-id"] == record.id
        assert record.outcome is Outcome.OK and record.key == "dev"
        assert record.usage is not None
        assert (record.usage.prompt, record.usage.cached, record.usage.completion) == (7, 4, 2)
        line = record.timeline
        assert line.first_token is None and line.done is not None
        assert line.body_complete is not None and line.sent is not None
        assert line.received <= line.body_complete <= line.sent <= line.done


async def test_credentials_and_hop_by_hop_headers_do_not_cross(way: Way, tmp_path: Path) -> None:
    settings = configuration(tmp_path, "http://x")
    async with scripted(answering(reply(b"{}"))) as backend:
        settings["backends"]["b0"] = {"url": backend.url, "api_key": "engine-key"}
        async with running(settings, tmp_path, way=way) as it:
            await it.client.post(
                "/v1/chat/completions",
                json=CHAT,
                headers={
                    "x-api-key": "other",
                    "cookie": "a=b",
                    "connection": "keep-alive, x-hop",
                    "x-hop": "1",
                    "x-gateway-secret": "1",
                    "x-vllm-priority": "9",
                    "x-kept": "1",
                    "accept-encoding": "gzip",
                },
            )
            sent = backend.requests[0].headers
            assert sent["authorization"] == "Bearer engine-key"
            assert sent["accept-encoding"] == "identity"
            assert sent["x-kept"] == "1"
            unwanted = {"x-api-key", "cookie", "x-hop", "x-gateway-secret", "x-vllm-priority"}
            assert not unwanted & sent.keys()
            assert KEY not in str(sent)


async def test_a_stream_is_relayed_and_timed(way: Way, tmp_path: Path) -> None:
    async with (
        scripted(streaming(FRAMES, pause=0.02)) as backend,
        running(configuration(tmp_path, backend.url), tmp_path, way=way) as it,
    ):
        body = {**CHAT, "stream": True, "stream_options": {"include_usage": True}}
        response = await it.client.post("/v1/chat/completions", json=body)
        assert response.content == b"".join(FRAMES)
        assert response.headers["content-type"].startswith("text/event-stream")
        record = await it.record()
        line = record.timeline
        assert line.sent and line.upstream_headers and line.first_byte
        assert line.first_token and line.last_token and line.done
        assert line.first_token - line.first_byte >= 0.015, "the role frame stopped the clock"
        assert line.last_token - line.first_token >= 0.015
        assert len(record.gaps) == 1
        assert record.usage is not None and record.usage.cached == 4


async def test_usage_is_asked_for_and_withheld_from_who_did_not_ask(
    way: Way, tmp_path: Path
) -> None:
    async with (
        scripted(streaming(FRAMES)) as backend,
        running(configuration(tmp_path, backend.url), tmp_path, way=way) as it,
    ):
        body = {**CHAT, "stream": True}
        response = await it.client.post("/v1/chat/completions", json=body)
        assert json.loads(backend.requests[0].body)["stream_options"] == {"include_usage": True}
        assert response.content == b"".join(FRAMES[:4] + FRAMES[5:])
        record = await it.record()
        assert record.usage is not None and record.usage.completion == 2


@pytest.mark.parametrize("stream", [False, True])
async def test_the_model_is_named_as_the_client_named_it(
    way: Way, tmp_path: Path, stream: bool
) -> None:
    async def script(request: Received, writer: asyncio.StreamWriter) -> None:
        if json.loads(request.body)["stream"]:
            frames = [frame({"content": '"model":"up/stream"'}, "stop", "up/stream"), FRAMES[-1]]
            await streaming(frames)(request, writer)
        else:
            writer.write(reply(json.dumps({**ANSWER, "model": "up/stream"}).encode()))

    async with scripted(script) as backend:
        settings = configuration(tmp_path, backend.url)
        settings["models"]["m"] |= {"upstream_model": "up/stream", "aliases": ["gpt-*"]}
        async with running(settings, tmp_path, way=way) as it:
            body = {**CHAT, "model": "gpt-4@a0", "stream": stream}
            response = await it.client.post("/v1/chat/completions", json=body)
            assert json.loads(backend.requests[0].body)["model"] == "up/stream"
            assert '"gpt-4@a0"' in response.text
            assert '"up/stream"' not in response.text.replace('\\"up/stream\\"', "")
            record = await it.record()
            assert (record.model, record.requested_model) == ("m", "gpt-4@a0")
            assert record.forced and record.assigned_arm == "a0"


@pytest.mark.parametrize("split", [1, 7, 100])
async def test_events_cut_anywhere_reach_the_client_whole(
    way: Way, tmp_path: Path, split: int
) -> None:
    data = b"".join(FRAMES)
    pieces = [data[n : n + split] for n in range(0, len(data), split)]
    async with (
        scripted(streaming(pieces)) as backend,
        running(configuration(tmp_path, backend.url), tmp_path, way=way) as it,
    ):
        body = {**CHAT, "stream": True, "stream_options": {"include_usage": True}}
        response = await it.client.post("/v1/chat/completions", json=body)
        assert response.content == data


@pytest.mark.parametrize("coding", ["gzip", "zstd"])
async def test_compressed_bodies(way: Way, tmp_path: Path, coding: str) -> None:
    plain = json.dumps(CHAT).encode()
    packed = gzip.compress(plain) if coding == "gzip" else zstandard.compress(plain)
    headers = {"content-encoding": coding, "content-type": "application/json"}
    async with (
        scripted(answering(reply(b"{}"))) as backend,
        running(configuration(tmp_path, backend.url), tmp_path, way=way) as it,
    ):
        url = "/v1/chat/completions"
        response = await it.client.post(url, content=packed, headers=headers)
        assert response.status_code == 200
        assert backend.requests[0].body == plain
        assert "content-encoding" not in backend.requests[0].headers
        broken = await it.client.post(url, content=packed[:-9], headers=headers)
        assert broken.status_code == 400
        bomb = b"\0" * (33 * 2**20)
        packed = gzip.compress(bomb) if coding == "gzip" else zstandard.compress(bomb)
        burst = await it.client.post(url, content=packed, headers=headers)
        assert burst.status_code == 413, burst.text


async def test_chunked_request_bodies(way: Way, tmp_path: Path) -> None:
    async def pieces() -> Any:
        data = json.dumps(CHAT).encode()
        for n in range(0, len(data), 5):
            yield data[n : n + 5]

    async with (
        scripted(answering(reply(b"{}"))) as backend,
        running(configuration(tmp_path, backend.url), tmp_path, way=way) as it,
    ):
        response = await it.client.post("/v1/chat/completions", content=pieces())
        assert response.status_code == 200
        assert json.loads(backend.requests[0].body) == CHAT


@pytest.mark.parametrize(
    "path",
    [
        "/v1/chat/completions",
        "/chat/completions",
        "/api/chat/completions",
        "/api/v1/chat/completions",
        "/v1/v1/chat/completions",
        "/anthropic/v1/chat/completions",
        "//v1/chat/completions",
        "/v1/chat/completions/",
        "/v1/%63hat/completions",
        "/v1/chat/completions?beta=true",
    ],
)
async def test_base_urls_that_nearly_fit(way: Way, tmp_path: Path, path: str) -> None:
    async with (
        scripted(answering(reply(b"{}"))) as backend,
        running(configuration(tmp_path, backend.url), tmp_path, way=way) as it,
    ):
        response = await it.client.post(it.url + path, json=CHAT)
        assert response.status_code == 200, response.text
        assert backend.requests[0].target == "/v1/chat/completions"


async def test_connections_to_the_backend_are_reused(way: Way, tmp_path: Path) -> None:
    async with (
        scripted(answering(reply(b"{}"))) as backend,
        running(configuration(tmp_path, backend.url), tmp_path, way=way) as it,
    ):
        for _ in range(20):
            assert (await it.client.post("/v1/chat/completions", json=CHAT)).status_code == 200
        assert backend.connections == 1


@pytest.mark.parametrize("stream", [False, True])
async def test_a_client_that_leaves_before_the_first_token_frees_the_backend(
    way: Way, tmp_path: Path, stream: bool
) -> None:
    """litellm#31499, production-stack#634: not noticed before the first byte, or unstreamed."""

    async def script(request: Received, writer: asyncio.StreamWriter) -> None:
        await asyncio.sleep(30)

    async with (
        scripted(script) as backend,
        running(configuration(tmp_path, backend.url), tmp_path, way=way) as it,
    ):
        body = {**CHAT, "stream": stream}
        request = asyncio.ensure_future(it.client.post("/v1/chat/completions", json=body))
        while not backend.requests:
            await asyncio.sleep(0.01)
        backend.gone.clear()
        request.cancel()
        await asyncio.wait_for(backend.gone.wait(), SLACK)
        record = await it.record()
        assert record.outcome is Outcome.CLIENT_GONE
        assert record.no_token is (NoToken.CLIENT_GONE if stream else None)
        assert it.gateway.context.table.backends["b0"].outstanding == 0
