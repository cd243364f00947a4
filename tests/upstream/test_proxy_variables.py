"""The gateway's own traffic goes where the configuration says, whatever proxies the environment
names: to a backend, and to `/health`, `/version` and `/v1/models` of its engine."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.support.simulated import UPSTREAM, simulated

CHAT = {"model": "m", "max_tokens": 2, "messages": [{"role": "user", "content": "hi"}]}


class Trap:
    """A proxy that lets nothing through, and counts who tried."""

    def __init__(self) -> None:
        self.url = ""
        self.caught = 0

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.caught += 1
        writer.write(b"HTTP/1.1 502 Bad Gateway\r\ncontent-length: 0\r\nconnection: close\r\n\r\n")
        writer.close()


@pytest.fixture
async def trap(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Trap]:
    """Every proxy variable names it, and no address is exempt."""
    trap = Trap()
    server = await asyncio.start_server(trap.serve, "127.0.0.1", 0)
    trap.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    for name in ("http_proxy", "https_proxy", "all_proxy"):
        monkeypatch.setenv(name, trap.url)
        monkeypatch.setenv(name.upper(), trap.url)
    for name in ("no_proxy", "NO_PROXY"):
        monkeypatch.delenv(name, raising=False)
    yield trap
    server.close()


async def test_requests_and_probes_pass_by_every_proxy(trap: Trap, tmp_path: Path) -> None:
    async with simulated(tmp_path) as both:
        backend = both.it.gateway.context.table.backends["b0"]
        async with asyncio.timeout(5):
            while backend.facts is None:
                await asyncio.sleep(0.01)
        whole = await both.it.client.post("/v1/chat/completions", json=CHAT)
        stream = await both.it.client.post("/v1/chat/completions", json={**CHAT, "stream": True})
        generated = await both.engine.metric("vllm:generation_tokens_total", model_name=UPSTREAM)
    assert (whole.status_code, stream.status_code) == (200, 200)
    assert stream.text.endswith("data: [DONE]\n\n")
    assert generated == 4
    assert backend.up and backend.probe_failures == 0
    assert trap.caught == 0


async def test_the_trap_catches_who_does_go_by_the_variables(trap: Trap) -> None:
    """Otherwise the test above could not fail."""
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-c", "import urllib.request as u; u.urlopen('http://127.0.0.1:1')"),
        stderr=asyncio.subprocess.DEVNULL,
    )
    assert await process.wait() == 1
    assert trap.caught == 1
