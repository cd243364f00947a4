from __future__ import annotations

import asyncio
import gc
import io
from pathlib import Path

import httpx
import pytest
from rich.console import Console

from gateway.demo import run
from gateway.demo.children import Child
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


class Unread(Console):
    """Its reader has left: what rich does then is to end the process."""

    def line(self, count: int = 1) -> None:
        raise SystemExit(1)


class Engine(Child):
    """A child that is no process."""

    def __init__(self) -> None:
        self.stopped = False

    def stop(self) -> None:
        self.stopped = True


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


async def test_a_reader_that_leaves_before_the_end_leaves_no_child(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(run, "Traffic", FakeTraffic)
    demo = Ends(Plan(1.0), requests=5, concurrency=2, console=Unread(file=io.StringIO()), web=False)
    engine = Engine()
    demo.children.append(engine)
    with pytest.raises(SystemExit):
        await demo.run()
    assert engine.stopped
