"""A simulated server on a real socket within the test's own event loop."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import httpx
import uvicorn
from prometheus_client.parser import text_string_to_metric_families

from gateway.simulator.config import EngineConfig
from gateway.simulator.engine import Engine
from gateway.simulator.server import create_app
from tests.support.served import served


@dataclass
class Server:
    """A simulated server that listens, and a client for it."""

    url: str
    engine: Engine
    client: httpx.AsyncClient

    async def post(self, path: str, **body: Any) -> httpx.Response:
        return await self.client.post(path, json=body)

    async def events(self, path: str, **body: Any) -> list[str]:
        """The stream's events, without the blank lines between them."""
        response = await self.post(path, stream=True, **body)
        assert response.status_code == 200
        assert response.headers["content-type"].startswith("text/event-stream")
        text = response.text
        assert text.endswith("\n\n")
        return text.removesuffix("\n\n").split("\n\n")

    async def metric(self, name: str, **labels: str) -> float:
        """One sample of `/metrics`."""
        text = (await self.client.get("/metrics")).text
        wanted = {"engine": "0", "model_name": "m", **labels}
        for family in text_string_to_metric_families(text):
            for sample in family.samples:
                if sample.name == name and sample.labels == wanted:
                    return float(sample.value)
        raise AssertionError(f"no {name} with {wanted} in:\n{text}")

    async def until(self, running: int) -> None:
        """Wait until as many requests run, at most half a second."""
        async with asyncio.timeout(0.5):
            while len(self.engine.scheduler.running) != running:
                await asyncio.sleep(0.002)


@asynccontextmanager
async def serving(**config: Any) -> AsyncIterator[Server]:
    """Serve a model `m`, a hundred times as fast as real unless told otherwise."""
    app = create_app(EngineConfig(**{"model": "m", "speed": 100.0, **config}))
    settings = uvicorn.Config(app, log_config=None, server_header=False)
    async with served(settings) as (_, port):
        url = f"http://127.0.0.1:{port}"
        # Nothing here is TLS, and reading the certificates takes longer than most tests.
        async with httpx.AsyncClient(base_url=url, trust_env=False, verify=False) as client:
            yield Server(url, app.state.engine, client)
