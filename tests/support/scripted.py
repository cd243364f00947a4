"""A scripted backend: a real socket that answers with the very bytes a test tells it to.

It stands in for engines that misbehave in ways the simulator does not.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from tests.support.listening import listening


@dataclass
class Received:
    """One request as it arrived; `left` is set once its sender goes before the script is done."""

    method: str
    target: str
    headers: dict[str, str]
    body: bytes
    connection: int
    left: asyncio.Event = field(default_factory=asyncio.Event)


Script = Callable[[Received, asyncio.StreamWriter], Awaitable[None]]
"""Writes what answers a request."""


def reply(
    body: bytes, *, status: str = "200 OK", headers: str = "content-type: application/json\r\n"
) -> bytes:
    """A whole HTTP reply with a content-length."""
    head = f"HTTP/1.1 {status}\r\n{headers}content-length: {len(body)}\r\n\r\n"
    return head.encode() + body


CLOSE = "content-type: application/json\r\nconnection: close\r\n"
ROUTES = (
    *("/v1/chat/completions", "/v1/completions", "/v1/messages", "/v1/responses"),
    "/v1/embeddings",
)
LISTING = json.dumps({"openapi": "3.1.0", "paths": {route: {"post": {}} for route in ROUTES}})
FACTS = {
    "/health": reply(b"", headers=CLOSE),
    "/version": reply(b'{"version":"0.32.0"}', headers=CLOSE),
    "/v1/models": reply(b'{"data":[{"id":"m","max_model_len":8192}]}', headers=CLOSE),
    "/openapi.json": reply(LISTING.encode(), headers=CLOSE),
    # It is no vLLM that counts anything, nor one in development mode.
    "/metrics": reply(b"", status="404 Not Found", headers=CLOSE),
    "/server_info?config_format=json": reply(b"", status="404 Not Found", headers=CLOSE),
}
"""What the gateway asks of a backend on its own account; scripts never see these requests."""


@dataclass
class ScriptedBackend:
    """What a script can do and what it saw; probes are answered and not counted.

    Attributes:
        requests: in order of arrival.
        connections: how many carried requests.
        gone: set when the other side closed a connection.
        facts: the answers to what the gateway asks on its own account.
    """

    script: Script
    facts: Mapping[str, bytes] = field(default_factory=lambda: FACTS)
    port: int = 0
    requests: list[Received] = field(default_factory=list)
    connections: int = 0
    gone: asyncio.Event = field(default_factory=asyncio.Event)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        number = self.connections + 1
        try:
            while not writer.is_closing():
                request = await _read(reader, number)
                if request.target in self.facts:
                    writer.write(self.facts[request.target])
                    return
                self.connections = max(self.connections, number)
                self.requests.append(request)
                await self._follow_script(request, reader, writer)
        except (asyncio.IncompleteReadError, ConnectionError):
            self.gone.set()
        finally:
            writer.close()

    async def _follow_script(
        self, request: Received, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        """Run the script until it is through or the other side has left."""
        script = asyncio.ensure_future(self._run(request, writer))
        left = asyncio.ensure_future(_left(reader))
        try:
            await asyncio.wait({script, left}, return_when=asyncio.FIRST_COMPLETED)
            if not script.done():
                raise ConnectionResetError
            script.result()
        except ConnectionError:
            request.left.set()
            raise
        finally:
            script.cancel()
            left.cancel()
            await asyncio.gather(script, left, return_exceptions=True)

    async def _run(self, request: Received, writer: asyncio.StreamWriter) -> None:
        try:
            await self.script(request, writer)
            await writer.drain()
        except RuntimeError:
            # uvloop's word for a write to a connection that the other side has closed.
            if not writer.is_closing():
                raise
            raise ConnectionResetError from None


async def _left(reader: asyncio.StreamReader) -> None:
    """Returns when the other side closes. Nothing is pipelined, so no bytes are lost."""
    while not reader.at_eof():
        await asyncio.sleep(0.005)


async def _read(reader: asyncio.StreamReader, number: int) -> Received:
    head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
    first, *lines = head.rstrip("\r\n").split("\r\n")
    method, target, _ = first.split(" ")
    headers = {
        name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)
    }
    body = await reader.readexactly(int(headers.get("content-length", "0")))
    return Received(method, target, headers, body, number)


@asynccontextmanager
async def scripted(
    script: Script,
    facts: Mapping[str, bytes] = FACTS,
) -> AsyncIterator[ScriptedBackend]:
    """A scripted backend on a free port of the loopback address."""
    backend = ScriptedBackend(script, facts)
    async with listening(backend.serve) as backend.port:
        yield backend


SSE_HEAD = (
    b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream; charset=utf-8\r\n"
    b"transfer-encoding: chunked\r\n\r\n"
)


def chunk(data: bytes) -> bytes:
    """One HTTP chunk; the empty one ends the body."""
    return b"%x\r\n%b\r\n" % (len(data), data)
