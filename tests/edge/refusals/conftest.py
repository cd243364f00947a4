"""A gateway with limits: on the size of a body, and on what four keys may do."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from tests.edge.refusals.keys import BLIND, NONE, POOR
from tests.support.running import KEY, Running, Way, configuration, running
from tests.support.scripted import Received, ScriptedBackend, reply, scripted


@pytest_asyncio.fixture(scope="module", loop_scope="module", params=["protocol", "asgi"])
async def shared(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[tuple[Running, ScriptedBackend]]:
    way: Way = request.param
    tmp_path = tmp_path_factory.mktemp("site")

    async def script(request: Received, writer: asyncio.StreamWriter) -> None:
        writer.write(reply(b"{}"))

    async with scripted(script) as backend:
        settings = configuration(tmp_path, backend.url)
        arms = {"a1": {"weight": 1, "backends": ["b1"]}}
        settings["models"] |= {"secret-model": {"arms": arms}}
        settings["backends"] |= {"b1": {"url": backend.url}}
        settings["server"] |= {"max_body_mib": 1}
        settings["keys"] = [
            {"name": "dev", "key": KEY, "models": ["m", "o*"], "arms": "none"},
            {"name": "poor", "key": POOR, "requests_per_minute": 2, "tokens_per_minute": 100},
            {"name": "none", "key": NONE, "models": ["other"]},
            {"name": "blind", "key": BLIND, "arms": ["a1"], "expose_arm": False},
        ]
        async with running(settings, tmp_path, way=way) as it:
            yield it, backend
