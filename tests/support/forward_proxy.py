"""A fake forward proxy on loopback: absolute-form requests and CONNECT tunnels, both counted."""

from __future__ import annotations

import asyncio
from base64 import b64encode
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from urllib.parse import urlsplit

from tests.support.listening import listening


@dataclass
class FakeForwardProxy:
    """What came to it, as the first line of each request: `GET http://…` or `CONNECT host:port`.

    Attributes:
        password: of user `u`; without it everybody may pass.
        heads: of the requests, whole.
    """

    password: str = ""
    port: int = 0
    lines: list[str] = field(default_factory=list)
    heads: list[str] = field(default_factory=list)

    @property
    def url(self) -> str:
        who = f"u:{self.password}@" if self.password else ""
        return f"http://{who}127.0.0.1:{self.port}"

    def paths(self) -> list[str]:
        """Of the absolute-form requests."""
        targets = [line.split(" ")[1] for line in self.lines]
        return [urlsplit(one).path for one in targets if one.startswith("http://")]

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """One connection of a client, for one request or one tunnel."""
        with suppress(asyncio.IncompleteReadError, ConnectionError):
            head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
            line, _, rest = head.partition("\r\n")
            self.lines.append(line.rpartition(" ")[0])
            self.heads.append(head)
            if self._lets_pass(head):
                await self._forward(line, rest, reader, writer)
            else:
                said = b"HTTP/1.1 407 Proxy Authentication Required\r\ncontent-length: 0\r\n"
                writer.write(said + b"connection: close\r\n\r\n")
        writer.close()

    def _lets_pass(self, head: str) -> bool:
        expected = b64encode(f"u:{self.password}".encode()).decode()
        return not self.password or f"authorization: basic {expected}".lower() in head.lower()

    async def _forward(
        self, line: str, rest: str, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        method, target, _ = line.split(" ")
        tunnel = method == "CONNECT"
        parts = urlsplit(f"//{target}" if tunnel else target)
        try:
            answers, out = await asyncio.open_connection(parts.hostname, parts.port)
        except OSError:
            said = b"HTTP/1.1 502 Bad Gateway\r\ncontent-length: 0\r\n"
            writer.write(said + b"connection: close\r\n\r\n")
            return
        if tunnel:
            writer.write(b"HTTP/1.1 200 Connection established\r\n\r\n")
        else:
            kept = "\r\n".join(
                one for one in rest.split("\r\n") if not one.lower().startswith("proxy-")
            )
            first = f"{method} {parts.path} HTTP/1.1\r\nconnection: close\r\n"
            out.write((first + kept).encode("latin-1"))
        async with asyncio.TaskGroup() as both:
            both.create_task(_pump(reader, out))
            both.create_task(_pump(answers, writer))


async def _pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Whatever follows, both ways, until either side closes."""
    with suppress(ConnectionError):
        while data := await reader.read(65536):
            writer.write(data)
            await writer.drain()
    writer.close()


@asynccontextmanager
async def forward_proxy(password: str = "") -> AsyncIterator[FakeForwardProxy]:
    """A proxy on a free port."""
    proxy = FakeForwardProxy(password)
    async with listening(proxy.serve) as proxy.port:
        yield proxy
