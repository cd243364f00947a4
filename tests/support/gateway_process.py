"""The gateway as operators run it: a process of its own, its command line, its files.

Asynchronous, since its engines mostly run in the test's own loop; for others there is `processes`.
"""

from __future__ import annotations

import asyncio
import json
import os
import secrets
import signal
import sys
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import yaml

from tests.support.ports import free_port

KEY = "sk-" + secrets.token_urlsafe(32)
ADMIN_KEY = "sk-" + secrets.token_urlsafe(32)
READ_KEY = "sk-" + secrets.token_urlsafe(32)


def settings(tmp_path: Path, a: str, b: str, **changes: Any) -> dict[str, Any]:
    """Model `m` with the arms `a` and `b`, half and half, at two addresses."""
    content: dict[str, Any] = {
        "server": {"port": free_port(), "drain_delay": 0.5, "drain_timeout": 5},
        "models": {
            "m": {
                "experiment": {"name": "chunk", "slo_ttft_ms": 500},
                "arms": {
                    "a": {"weight": 50, "role": "control", "backends": ["a1"]},
                    "b": {"weight": 50, "backends": ["b1"]},
                },
            }
        },
        "backends": {"a1": {"url": a}, "b1": {"url": b}},
        "keys": [{"name": "dev", "key": KEY}],
        "admin": {"key": ADMIN_KEY, "read_key": READ_KEY},
        "database_url": f"sqlite:///{tmp_path}/gateway.db",
    }
    return content | changes


@dataclass
class Process:
    """A running gateway."""

    folder: Path
    url: str
    child: asyncio.subprocess.Process
    client: httpx.AsyncClient

    @property
    def config(self) -> Path:
        return self.folder / "gateway.yaml"

    @property
    def said(self) -> str:
        """What it has written to standard error."""
        return (self.folder / "stderr").read_text()

    @property
    def lines(self) -> list[dict[str, Any]]:
        """The access log."""
        written = (self.folder / "access.jsonl").read_text()
        return [json.loads(line) for line in written.splitlines()]

    def write(self, content: dict[str, Any]) -> None:
        write(self.folder, content)

    async def admin(self, path: str, method: str = "GET", **options: Any) -> httpx.Response:
        headers = {"authorization": f"Bearer {options.pop('key', ADMIN_KEY)}"}
        return await self.client.request(method, f"/admin/v1{path}", headers=headers, **options)

    async def weights(self) -> dict[str, float]:
        arms = (await self.admin("/models/m")).json()["arms"]
        return {arm["name"]: arm["weight"] for arm in arms}

    async def ask(self, session: str, **options: Any) -> httpx.Response:
        """One chat request of a session."""
        body = {"model": "m", "messages": [{"role": "user", "content": "hi"}]}
        headers = {"x-session-id": session} | options.pop("headers", {})
        return await self.client.post(
            "/v1/chat/completions", json=body | options, headers=headers, timeout=20
        )

    async def command(self, *arguments: str) -> tuple[int, str]:
        """Run `gateway …`; its status and all it wrote."""
        env = {"GATEWAY_URL": self.url, "GATEWAY_ADMIN_KEY": ADMIN_KEY}
        return await command(*arguments, env=env)

    async def eventually(self, seconds: float, check: Any) -> None:
        """Wait until an asynchronous check holds."""
        async with asyncio.timeout(seconds):
            while not await check():
                await asyncio.sleep(0.05)

    async def stop(self, number: signal.Signals = signal.SIGTERM) -> int:
        if self.child.returncode is None:
            self.child.send_signal(number)
        return await asyncio.wait_for(self.child.wait(), 15)


async def command(
    *arguments: str, env: dict[str, str] | None = None, folder: Path | None = None
) -> tuple[int, str]:
    """Run `gateway …` in a clean environment; its status and all it wrote."""
    child = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "gateway", *arguments,
        env=_environment() | (env or {}),
        cwd=folder, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT,
    )  # fmt: skip
    output, _ = await asyncio.wait_for(child.communicate(), 30)
    return child.returncode or 0, output.decode()


def write(folder: Path, content: dict[str, Any]) -> Path:
    path = folder / "gateway.yaml"
    fresh = path.with_suffix(".new")
    fresh.write_text(yaml.safe_dump(content, sort_keys=False))
    fresh.replace(path)
    return path


@asynccontextmanager
async def serving(
    folder: Path,
    content: dict[str, Any],
    words: Sequence[str] | None = None,
    stdout: int | None = None,
) -> AsyncIterator[Process]:
    """Start `gateway serve` with this configuration and end it afterwards.

    Args:
        words: of the command line; None sends the access log to `Process.lines`.
    """
    if words is None:
        words = ("--access-log", str(folder / "access.jsonl"))
    config = write(folder, content)
    url = f"http://127.0.0.1:{content['server']['port']}"
    with (folder / "stderr").open("ab") as errors:
        child = await asyncio.create_subprocess_exec(
            sys.executable, "-m", "gateway", "serve", "-c", str(config), *words,
            env=_environment(), stdout=stdout, stderr=errors,
        )  # fmt: skip
    headers = {"authorization": f"Bearer {KEY}"}
    async with httpx.AsyncClient(base_url=url, headers=headers, trust_env=False) as client:
        it = Process(folder, url, child, client)
        try:
            await _answering(it)
            yield it
        finally:
            if child.returncode is None:
                child.kill()
                await child.wait()


async def _answering(it: Process) -> None:
    async with asyncio.timeout(20):
        while it.child.returncode is None:
            try:
                if (await it.client.get("/health")).status_code == 200:
                    return
            except httpx.TransportError:
                await asyncio.sleep(0.05)
    raise AssertionError(it.said)


def _environment() -> dict[str, str]:
    return {"PATH": os.environ["PATH"], "HOME": "/nonexistent", "PYTHONWARNINGS": "error"}
