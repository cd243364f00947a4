"""What each kind of server is found to offer, over real sockets."""

from __future__ import annotations

import asyncio
from pathlib import Path

from gateway.routing.backend import Backend
from tests.simulator.running import serving
from tests.support.running import ADMIN_KEY, Running, configuration, running
from tests.support.scripted import FACTS, Received, reply, scripted

NO_LISTING = {path: answer for path, answer in FACTS.items() if path != "/openapi.json"}


async def chat_only(request: Received, writer: asyncio.StreamWriter) -> None:
    """A server of the days before the other APIs, with its documentation switched off."""
    if request.target == "/v1/chat/completions":
        writer.write(reply(b'{"object":"error","message":"empty"}', status="400 Bad Request"))
    else:
        writer.write(reply(b'{"detail":"Not Found"}', status="404 Not Found"))


async def learnt(it: Running, name: str = "b0") -> Backend:
    """The backend once it has been asked."""
    backend = it.gateway.context.table.backends[name]
    async with asyncio.timeout(5):
        while backend.facts is None:
            await asyncio.sleep(0.01)
    return backend


async def test_a_chat_only_server_is_known_as_one(tmp_path: Path) -> None:
    async with (
        scripted(chat_only, NO_LISTING) as old,
        running(configuration(tmp_path, old.url), tmp_path) as it,
    ):
        backend = await learnt(it)
        assert backend.apis == frozenset({"chat"})
        assert not backend.offers("messages") and backend.offers("other")
        posted = [request for request in old.requests if request.method == "POST"]
        assert [request.body for request in posted] == [b"{}"] * 5
        headers = {"authorization": f"Bearer {ADMIN_KEY}"}
        (shown,) = (await it.client.get("/admin/v1/backends", headers=headers)).json()
        assert shown["apis"] == ["chat"]


async def test_a_server_that_lists_its_routes_gets_no_empty_requests(tmp_path: Path) -> None:
    async with (
        scripted(chat_only) as listing,
        running(configuration(tmp_path, listing.url), tmp_path) as it,
    ):
        backend = await learnt(it)
        every = {"chat", "completions", "messages", "responses", "embeddings"}
        assert backend.apis == frozenset(every)
        assert listing.requests == []


async def test_the_simulator_lists_its_routes_as_vllm_does(tmp_path: Path) -> None:
    async with (
        serving() as engine,
        running(configuration(tmp_path, engine.url), tmp_path) as it,
    ):
        apis = (await learnt(it)).apis
        assert apis is not None and apis >= {"chat", "completions", "messages", "responses"}
