"""A gateway and its scripted backends, started once for all tests of a module.

Starting one takes longer than nearly every test; between tests everything is put back.
"""

from __future__ import annotations

import asyncio
import copy
import json
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import pytest

from gateway.app import Gateway
from gateway.keys.limits import Limiter
from gateway.records import EngineFacts, Record
from gateway.routing.backend import Backend
from gateway.routing.circuit import Circuit
from gateway.settings import Settings
from tests.support.apis import DIALECTS, Dialect
from tests.support.running import Running, Way, configuration, running
from tests.support.scripted import SSE_HEAD, Received, ScriptedBackend, chunk, reply, scripted

every_api = pytest.mark.parametrize("dialect", DIALECTS, ids=lambda one: one.api)
own = pytest.mark.parametrize("shared", ["protocol"], indirect=True)
"""For what only the gateway's own protocol class does, or what takes its time in every API."""
both = pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])

FACTS = EngineFacts("0.32.0", 8192)
"""What the gateway has learnt of each backend, but for its APIs."""

Script = Callable[[Received, asyncio.StreamWriter], Awaitable[None]]


@dataclass
class Site:
    """A gateway with the backends `b0`, `b1`, `b2`, which tests give something to play.

    Attributes:
        way: how its hot routes are served.
        log: the file of the access log.
    """

    it: Running
    backends: list[ScriptedBackend]
    base: dict[str, Any]
    way: Way
    log: Path

    @property
    def gateway(self) -> Gateway:
        return self.it.gateway

    @property
    def client(self) -> httpx.AsyncClient:
        return self.it.client

    @property
    def records(self) -> list[Record]:
        return self.it.records

    def backend(self, name: str = "b0") -> Backend:
        """What the gateway knows of a backend."""
        return self.gateway.context.table.backends[name]

    def play(self, *scripts: Script) -> None:
        """What the backends do with a request, in order."""
        for backend, script in zip(self.backends, scripts, strict=False):
            backend.script = script

    def configure(self, **changes: Any) -> None:
        """Put the base configuration in force, with sections changed; what was learnt of
        the backends is forgotten.

        Without `models`, `b0` alone serves.
        """
        settings = copy.deepcopy(self.base) | {"models": self.arms(["b0"])}
        for name, change in changes.items():
            if name in ("models", "keys"):
                settings[name] = change
            elif isinstance(change, dict):
                settings.setdefault(name, {}).update(change)
            else:
                settings[name] = change
        valid = Settings.model_validate(settings)
        self.gateway.put_in_force(valid, self.gateway.keep(valid))
        for backend in self.gateway.context.table.backends.values():
            backend.circuit = Circuit(self.gateway.context.clock)
            backend.facts = FACTS

    def arms(self, *arms: list[str], **model: Any) -> dict[str, Any]:
        """Models for `configure`: `m` with the arms `a0`, `a1`, … of these backends.

        Every request is assigned to `a0`: the others come into play when it fails.
        """
        shares = [1_000_000] + [0.000_001] * (len(arms) - 1)
        return {
            "m": {
                "arms": {
                    f"a{n}": {"weight": shares[n], "backends": backends}
                    for n, backends in enumerate(arms)
                },
                **model,
            }
        }

    async def ask(self, dialect: Dialect, *, stream: bool = True, **options: Any) -> httpx.Response:
        """Send the dialect's request and read the whole answer."""
        body = dialect.streamed if stream else dialect.request
        return await self.client.post(dialect.path, json=body, **options)

    async def expect_good(self, dialect: Dialect, *, stream: bool = True, **options: Any) -> None:
        """Ask, and expect the dialect's whole answer."""
        response = await self.ask(dialect, stream=stream, **options)
        assert response.status_code == 200, response.text
        if stream:
            assert response.content == b"".join(dialect.frames)
        else:
            assert response.json() == dialect.reply

    def served(self) -> list[str]:
        """The names of the backends that were asked, with repetition, not in time's order."""
        return [f"b{n}" for n, backend in enumerate(self.backends) for _ in backend.requests]

    async def record(self, number: int = 1) -> Record:
        return await self.it.record(number)

    async def line(self, record: Record) -> dict[str, Any]:
        """The line of the access log about a request."""
        async with asyncio.timeout(5):
            while True:
                for text in self.log.read_text().splitlines():
                    if record.id in text:
                        line: dict[str, Any] = json.loads(text)
                        return line
                await asyncio.sleep(0.02)

    def reset(self) -> None:
        self.records.clear()
        for backend in self.backends:
            backend.script = silent
            backend.requests.clear()
        context = self.gateway.context
        context.limiter = Limiter(context.clock)
        self.configure()


@asynccontextmanager
async def site(tmp_path: Path, way: Way, **changes: Any) -> AsyncIterator[Site]:
    """Three backends, each the only one of its arm, and a gateway.

    Args:
        changes: sections of the configuration.
    """
    async with scripted(silent) as b0, scripted(silent) as b1, scripted(silent) as b2:
        backends = [b0, b1, b2]
        base = configuration(tmp_path, *(backend.url for backend in backends), **changes)
        async with running(base, tmp_path, way=way, prepare=_write_soon) as it:
            yield Site(it, backends, base, way, tmp_path / "access.jsonl")


def _write_soon(gateway: Gateway) -> None:
    """Tests that read the access log would wait for it 0.1 s each."""
    gateway.access_log.interval = 0.01


async def until(condition: Callable[[], object], within: float = 5.0) -> float:
    """Wait for something to become true; returns the seconds it took."""
    began = time.monotonic()
    async with asyncio.timeout(within):
        while not condition():
            await asyncio.sleep(0.002)
    return time.monotonic() - began


# Scripts


async def silent(request: Received, writer: asyncio.StreamWriter) -> None:
    """Never answers."""
    await asyncio.sleep(30)


def says(*data: bytes, pause: float = 0.0, close: bool = False) -> Script:
    """Sends these bytes, with a pause in between, and closes the connection if asked to."""

    async def script(request: Received, writer: asyncio.StreamWriter) -> None:
        for n, one in enumerate(data):
            if n and pause:
                await writer.drain()
                await asyncio.sleep(pause)
            writer.write(one)
        if close:
            await writer.drain()
            writer.close()

    return script


def streams(
    *frames: bytes, pause: float = 0.0, then: Script | None = None, delay: float = 0.0
) -> Script:
    """Streams these frames; ends the stream properly, or goes on with `then`."""

    async def script(request: Received, writer: asyncio.StreamWriter) -> None:
        writer.write(SSE_HEAD)
        await writer.drain()
        await asyncio.sleep(delay)
        for n, one in enumerate(frames):
            if n and pause:
                await writer.drain()
                await asyncio.sleep(pause)
            writer.write(chunk(one))
        await writer.drain()
        if then is not None:
            await then(request, writer)
        else:
            writer.write(chunk(b""))

    return script


def answers(dialect: Dialect, *, delay: float = 0.0, pause: float = 0.0) -> Script:
    """A good backend: a stream or a whole answer, as asked."""

    async def script(request: Received, writer: asyncio.StreamWriter) -> None:
        await asyncio.sleep(delay)
        if json.loads(request.body).get("stream"):
            await streams(*dialect.frames, pause=pause)(request, writer)
        else:
            writer.write(reply(json.dumps(dialect.reply).encode()))

    return script


def refuses(status: str, message: str = "no") -> Script:
    """Answers with an error of this status, such as `503 Service Unavailable`."""
    error = {"error": {"message": message, "type": "x", "param": None, "code": int(status[:3])}}
    return says(reply(json.dumps(error).encode(), status=status))


NO_ROUTE = says(reply(b'{"detail":"Not Found"}', status="404 Not Found"))


def chat_only(script: Script, **others: Script) -> Script:
    """A backend without Messages and Responses; `others` answer paths by their last word."""

    async def play(request: Received, writer: asyncio.StreamWriter) -> None:
        if request.target == "/v1/chat/completions":
            await script(request, writer)
        else:
            await others.get(request.target.rpartition("/")[2], NO_ROUTE)(request, writer)

    return play


async def hangs_up(request: Received, writer: asyncio.StreamWriter) -> None:
    """Closes without a byte."""
    writer.close()
