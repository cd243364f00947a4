"""How a gateway ends: what still gets in, what still gets out, and how soon it is over."""

from __future__ import annotations

import asyncio
import json
import signal
import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.operation.engine import Engine, asking
from tests.support.apis import DIALECTS, Dialect
from tests.support.gateway_process import Process, serving, settings
from tests.support.patience import SLACK
from tests.support.scripted import scripted


@pytest.fixture
async def content(tmp_path: Path) -> AsyncIterator[dict[str, Any]]:
    async with scripted(Engine("a1")) as a1, scripted(Engine("b1")) as b1:
        yield settings(tmp_path, a1.url, b1.url)


def stream(
    it: Process, dialect: Dialect = DIALECTS[0], **play: Any
) -> asyncio.Task[httpx.Response]:
    body = asking(dialect, **play)
    return asyncio.create_task(it.client.post(dialect.path, json=body, timeout=20))


async def connects(it: Process) -> bool:
    """Whether a new connection is accepted."""
    try:
        async with httpx.AsyncClient(base_url=it.url, trust_env=False) as client:
            await client.get("/health")
    except httpx.ConnectError:
        return False
    return True


async def test_a_drain_finishes_streams_and_then_refuses(
    tmp_path: Path, content: dict[str, Any]
) -> None:
    content["server"] |= {"drain_delay": 1, "drain_timeout": 30}
    async with serving(tmp_path, content) as it:
        running = stream(it, tokens=90, gap=0.03)
        await asyncio.sleep(0.3)
        it.child.send_signal(signal.SIGTERM)
        start = time.monotonic()
        await asyncio.sleep(0.2)
        ready = await it.client.get("/ready")
        assert (ready.status_code, ready.json()["status"]) == (503, "draining")
        assert await connects(it), "the listener still accepts for drain_delay"
        late = await it.ask("late")
        assert (late.status_code, late.headers["connection"]) == (200, "close")
        while await connects(it):
            await asyncio.sleep(0.05)
        assert 0.9 < time.monotonic() - start < 1 + SLACK
        assert not running.done()
        answer = await running
        assert answer.text.count('"content":"a"') == 90
        assert answer.text.endswith("data: [DONE]\n\n")
        assert await asyncio.wait_for(it.child.wait(), SLACK) == 0
        assert {line["outcome"] for line in it.lines} == {"ok"} and len(it.lines) == 2
        assert "ERROR" not in it.said and "Traceback" not in it.said


async def test_a_drain_that_takes_too_long_ends_streams_with_their_apis_error(
    tmp_path: Path, content: dict[str, Any]
) -> None:
    """The limit is the one of the configuration in force when the drain begins."""
    content["server"] |= {"drain_delay": 0, "drain_timeout": 300}
    async with serving(tmp_path, content) as it:
        content["server"]["drain_timeout"] = 0.6
        it.write(content)
        assert (await it.admin("/reload", "POST")).status_code == 200
        running = [(one, stream(it, one, tokens=900, gap=0.03)) for one in DIALECTS]
        held = stream(it, first=20)  # no token has come, and none will
        whole = asyncio.create_task(
            it.client.post("/v1/chat/completions", json=asking(stream=False, first=20), timeout=20)
        )
        await asyncio.sleep(0.4)
        it.child.send_signal(signal.SIGTERM)
        start = time.monotonic()
        for dialect, task in running:
            answer = await task
            assert answer.status_code == 200
            assert "restarting" in dialect.failure(answer.content)["message"], dialect.api
        assert "restarting" in (await held).text
        refused = await whole
        assert (refused.status_code, refused.headers["retry-after"]) == (503, "1")
        assert await asyncio.wait_for(it.child.wait(), SLACK) == 0
        assert 0.5 < time.monotonic() - start < 0.6 + SLACK
        assert len(it.lines) == 6
        for line in it.lines:
            assert line["outcome"] == "gateway_error" and line["done_ms"] > 0
            assert line["error"] and line["backend"]
        assert "Traceback" not in it.said


async def test_a_second_signal_ends_at_once(tmp_path: Path, content: dict[str, Any]) -> None:
    content["server"] |= {"drain_delay": 20, "drain_timeout": 600}
    async with serving(tmp_path, content) as it:
        running = stream(it, tokens=900, gap=0.03)
        await asyncio.sleep(0.4)
        it.child.send_signal(signal.SIGTERM)
        await asyncio.sleep(0.3)
        assert not running.done()
        it.child.send_signal(signal.SIGTERM)
        start = time.monotonic()
        assert await asyncio.wait_for(it.child.wait(), SLACK) == 0
        assert time.monotonic() - start < SLACK
        answer = await running
        assert "restarting" in json.loads(answer.text.split("\n\n")[-3][6:])["error"]["message"]
        (line,) = it.lines
        assert line["outcome"] == "gateway_error" and line["last_token_ms"] > 0
        assert "Traceback" not in it.said


async def test_ctrl_c_ends_without_the_delay(tmp_path: Path, content: dict[str, Any]) -> None:
    content["server"] |= {"drain_delay": 20}
    async with serving(tmp_path, content) as it:
        assert (await it.ask("s")).status_code == 200
        it.child.send_signal(signal.SIGINT)
        start = time.monotonic()
        assert await asyncio.wait_for(it.child.wait(), SLACK) == 0
        assert time.monotonic() - start < SLACK
        assert len(it.lines) == 1
        assert "Traceback" not in it.said and "ERROR" not in it.said
        assert "draining: open requests have" in it.said
