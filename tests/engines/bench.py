"""A backend whose engine answers as told, and the gateway's questions to it."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import httpx

from gateway.engines.engines import Engines
from gateway.records import EngineFacts
from tests.engines.fakes import FakeBackend, nothing_of

MODELS: dict[str, Any] = {
    "data": [{"id": "adapter", "max_model_len": 1}, {"id": "up/m", "max_model_len": 8192}]
}
VERSION = {"version": "0.32.0"}

LISTING: dict[str, Any] = {
    "paths": {"/v1/chat/completions": {"post": {}}, "/v1/completions": {}, "/health": {}}
}
LISTED = frozenset({"chat", "completions"})

Answer = Callable[[httpx.Request], Awaitable[httpx.Response]]


class Bench:
    """Backend `x` of model `m`, which engines call `up/m`, and the requests it got."""

    def __init__(self, answer: Answer, timeout: float = 5.0) -> None:
        self.seen: list[httpx.Request] = []
        self.backend = FakeBackend()

        async def note(request: httpx.Request) -> httpx.Response:
            self.seen.append(request)
            return await answer(request)

        client = httpx.AsyncClient(transport=httpx.MockTransport(note))
        self.engines = Engines(
            lambda model: f"up/{model}",
            lambda model: [self.backend],
            nothing_of,
            lambda _: client,
            timeout,
        )

    async def probe(self) -> EngineFacts | None:
        """What is known once a probe has succeeded and the engine has answered."""
        self.engines.healthy(self.backend)
        await asyncio.gather(*self.engines._open.values())
        return self.backend.facts


def telling(models: Any = MODELS, version: Any = VERSION) -> Answer:
    async def answer(request: httpx.Request) -> httpx.Response:
        told = {"/p/v1/models": models, "/p/version": version}.get(request.url.path, LISTING)
        return httpx.Response(200, **{"content" if isinstance(told, bytes) else "json": told})

    return answer
