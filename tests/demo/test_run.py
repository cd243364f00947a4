from __future__ import annotations

import asyncio
import gc
import io
from pathlib import Path

import httpx
import pytest
from rich.console import Console

from gateway.demo import run
from gateway.demo.plan import Plan
from gateway.demo.run import Demo
from gateway.errors import GatewayError


class FakeTraffic:
    """Its requests fail in the moment in which it is ended."""

    def __init__(self, *_: object, **__: object) -> None: ...

    async def run(self) -> None:
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            raise ConnectionError("the gateway has gone") from None


class Ends(Demo):
    """A demo that notices that its gateway has gone."""

    async def _start(self, folder: Path) -> str:
        return "http://127.0.0.1:9"

    async def _show(self, url: str, client: httpx.AsyncClient, driving: asyncio.Task[None]) -> None:
        await asyncio.sleep(0.01)
        raise GatewayError("gateway ended")


async def end(demo: Demo) -> str:
    """How it ends; nothing holds the error afterwards."""
    try:
        await demo.run()
    except GatewayError as error:
        return error.message
    return ""


async def test_requests_that_fail_with_the_gateway_are_told_once(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(run, "Traffic", FakeTraffic)
    demo = Ends(
        Plan(1.0), requests=5, concurrency=2, console=Console(file=io.StringIO()), web=False
    )
    assert await end(demo) == "gateway ended"
    gc.collect()  # only now asyncio would tell of a failure that nobody has looked at
    assert caplog.messages == []
