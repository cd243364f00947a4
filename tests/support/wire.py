"""A client that says exactly what a test tells it to, byte for byte, and reads what comes."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

from tests.support.running import KEY


@dataclass
class Answer:
    """One HTTP reply. `body` is without its chunked framing."""

    status: int
    headers: dict[str, str]
    body: bytes

    def json(self) -> Any:
        return json.loads(self.body)


class Wire:
    """One connection to a gateway; every wait is bounded, so that a hung server fails the test."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader = reader
        self.writer = writer

    def send(self, data: bytes) -> None:
        self.writer.write(data)

    async def answer(self, within: float = 5.0) -> Answer:
        """The next reply; interim ones are passed over."""
        async with asyncio.timeout(within):
            while True:
                status, headers = await self.head()
                if status >= 200:
                    return Answer(status, headers, await self._body(headers))

    async def head(self) -> tuple[int, dict[str, str]]:
        """The next status line and headers, whatever status it is."""
        raw = (await self.reader.readuntil(b"\r\n\r\n")).decode("latin-1")
        first, *lines = raw.rstrip("\r\n").split("\r\n")
        version, status, _ = first.split(" ", 2)
        assert version == "HTTP/1.1", f"not a status line: {first!r}"
        pairs = [line.partition(": ") for line in lines]
        headers = {name.lower(): value for name, _, value in pairs}
        assert len(headers) == len(pairs), f"a header stands twice: {lines}"
        return int(status), headers

    async def _body(self, headers: dict[str, str]) -> bytes:
        if "content-length" in headers:
            assert "transfer-encoding" not in headers
            return await self.reader.readexactly(int(headers["content-length"]))
        if headers.get("transfer-encoding") != "chunked":
            return await self.reader.read()
        parts: list[bytes] = []
        while size := int(await self.reader.readuntil(b"\r\n"), 16):
            parts.append(await self.reader.readexactly(size))
            assert await self.reader.readexactly(2) == b"\r\n"
        assert await self.reader.readexactly(2) == b"\r\n"
        return b"".join(parts)

    async def closed(self, within: float = 5.0) -> bytes:
        """What still comes until the other side closes."""
        try:
            async with asyncio.timeout(within):
                return await self.reader.read()
        except ConnectionResetError:
            return b""


@asynccontextmanager
async def wire(port: int, *, limit: int = 2**16) -> AsyncIterator[Wire]:
    """A connection to a port of the loopback address, closed at the end."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port, limit=limit)
    try:
        yield Wire(reader, writer)
    finally:
        writer.transport.abort()


def post(
    body: bytes | dict[str, Any],
    path: str = "/v1/chat/completions",
    headers: str = "",
    version: str = "1.1",
) -> bytes:
    """A whole request with a content-length and the test's key."""
    if isinstance(body, dict):
        body = json.dumps(body).encode()
    return head(path, f"content-length: {len(body)}\r\n{headers}", version) + body


def head(path: str = "/v1/chat/completions", headers: str = "", version: str = "1.1") -> bytes:
    """The head of a POST with the test's key."""
    return (
        f"POST {path} HTTP/{version}\r\nhost: x\r\nauthorization: Bearer {KEY}\r\n"
        f"content-type: application/json\r\n{headers}\r\n"
    ).encode()
