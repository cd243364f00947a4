"""Two real engines that differ in their token budget, and the gateway before them."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import httpx
import pytest

from benchmarks.engine.serving import MODEL
from tests.support.gateway_process import KEY, Process, serving, settings
from tests.support.simulated import Totals, counted

Arm = Literal["a", "b"]
ARMS: tuple[Arm, Arm] = ("a", "b")
BUDGETS: dict[Arm, int] = {"a": 64, "b": 512}
BLOCK = 128
"""Tokens of a cache block, as vLLM has it on CPUs."""
ENGINE_KEY = "sk-engine-0123456789abcdefghijklmn"
"""What the second engine demands; the first takes anything."""

on_engine = [
    pytest.mark.engine,
    pytest.mark.asyncio(loop_scope="session"),
    # The first test of a run installs the engine where it is not there, and starts two.
    pytest.mark.timeout(1200),
]
each_arm = pytest.mark.parametrize("arm", ARMS, ids=[f"budget-{BUDGETS[arm]}" for arm in ARMS])


@dataclass
class Lab:
    """Attributes:
    client: asks the gateway, as a client does.
    engines: ask an engine itself, by arm.
    """

    gateway: Process
    client: httpx.AsyncClient
    engines: Mapping[Arm, httpx.AsyncClient]

    async def counted(self, arm: Arm) -> Totals:
        """What the gateway (`gateway_…`, all arms) and this engine (`vllm:…`) have counted."""
        pages = [await client.get("/metrics") for client in (self.client, self.engines[arm])]
        return counted(*(page.text for page in pages))

    async def added(self, arm: Arm, before: Totals, requests: int) -> Totals:
        """What was added since, once both sides have counted so many requests of this arm.

        Both count a request after its last byte has gone out; a page is not of one moment, so it
        is read once more.
        """
        async with asyncio.timeout(10):
            seen = 0.0
            while seen < requests:
                now = await self.counted(arm) - before
                gateway = now.labelled("gateway_requests_total", arm=arm)
                seen = min(gateway, now["vllm:request_success_total"])
                await asyncio.sleep(0.1)
        return await self.counted(arm) - before

    async def line(self, request_id: str) -> dict[str, Any]:
        """The line of the access log about a request."""
        async with asyncio.timeout(10):
            while True:
                for line in self.gateway.lines:
                    if line["id"] == request_id:
                        return line
                await asyncio.sleep(0.05)

    async def running(self, arm: Arm) -> float:
        """How many requests the engine works on, those that wait included."""
        page = (await self.engines[arm].get("/metrics")).text
        names = ("vllm:num_requests_running{", "vllm:num_requests_waiting{")
        return sum(
            float(line.rpartition(" ")[2]) for line in page.splitlines() if line.startswith(names)
        )

    async def until_running(
        self, arm: Arm, wanted: Callable[[float], bool], within: float
    ) -> float:
        """Wait for the engine's load to become so; the seconds it took."""
        began = time.monotonic()
        async with asyncio.timeout(within):
            while not wanted(await self.running(arm)):
                await asyncio.sleep(0.02)
        return time.monotonic() - began


@asynccontextmanager
async def lab(folder: Path, urls: Mapping[Arm, str]) -> AsyncIterator[Lab]:
    """Start the gateway before these engines, and wait until it has asked them what they offer."""
    keys: dict[Arm, str | None] = {"a": None, "b": ENGINE_KEY}
    backends: dict[str, Any] = {"a1": {"url": urls["a"]}}
    backends["b1"] = {"url": urls["b"], "api_key": ENGINE_KEY}
    backends["wrong-key"] = {"url": urls["b"], "api_key": "sk-wrong"}
    content = settings(folder, urls["a"], urls["b"], backends=backends)
    content["models"]["m"]["upstream_model"] = MODEL
    content["models"]["locked"] = {
        "upstream_model": MODEL,
        "arms": {"only": {"weight": 1, "backends": ["wrong-key"]}},
    }
    async with AsyncExitStack() as stack:
        engines = {
            arm: await stack.enter_async_context(_asking(urls[arm], keys[arm])) for arm in ARMS
        }
        for engine in engines.values():
            # An engine makes the list of its routes when it is first asked for it. On a busy
            # machine that takes longer than the gateway waits.
            await engine.get("/openapi.json")
        gateway = await stack.enter_async_context(serving(folder, content))
        client = await stack.enter_async_context(_asking(gateway.url, KEY))
        it = Lab(gateway, client, engines)
        await gateway.eventually(60, lambda: _all_known(it))
        yield it


def _asking(url: str, key: str | None) -> httpx.AsyncClient:
    headers = {} if key is None else {"authorization": f"Bearer {key}"}
    return httpx.AsyncClient(base_url=url, headers=headers, timeout=120, trust_env=False)


async def _all_known(it: Lab) -> bool:
    backends = (await it.gateway.admin("/backends")).json()
    asked = [one for one in backends if one["name"] in ("a1", "b1")]
    # The budget is what they tell last.
    return all((one["running"] or {}).get("max_num_batched_tokens") for one in asked)


def events(text: str) -> list[dict[str, Any]]:
    """The payloads of a stream's events."""
    data = [line.removeprefix("data: ") for line in text.splitlines() if line.startswith("data: ")]
    return [json.loads(one) for one in data if one != "[DONE]"]
