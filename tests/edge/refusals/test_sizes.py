"""Bodies over the limit, and connections on which a request was refused."""

from __future__ import annotations

import asyncio
import gzip
import json

import pytest
import zstandard

from gateway.records import Outcome
from tests.edge.refusals.told import openai_error
from tests.support.apis import CHAT, MESSAGES
from tests.support.running import KEY, Running
from tests.support.scripted import ScriptedBackend, chunk
from tests.support.wire import head, post, wire

pytestmark = pytest.mark.asyncio(loop_scope="module")

MIB = 2**20


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
