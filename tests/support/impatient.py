"""A gateway with little patience, and a backend that takes as long as a request tells it to."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from tests.support.apis import CHAT
from tests.support.running import Running, Way, configuration, running
from tests.support.scripted import SSE_HEAD, Received, ScriptedBackend, chunk, reply, scripted

HEADER_TIMEOUT = 0.3
BODY_TIMEOUT = 0.4
WHOLE = json.dumps(CHAT.reply).encode()


async def follow(request: Received, writer: asyncio.StreamWriter) -> None:
    """Answers as the request's `user` says: after so many seconds, or as a stream that long."""
    body = json.loads(request.body)
    if not body.get("stream"):
        await asyncio.sleep(float(body.get("user", 0)))
        writer.write(reply(WHOLE))
        return
    writer.write(SSE_HEAD + chunk(b"".join(CHAT.opening + CHAT.tokens)))
    await writer.drain()
    await asyncio.sleep(float(body.get("user", 0)))
    writer.write(chunk(b"".join(CHAT.ending)) + chunk(b""))


def asked(seconds: float = 0.0, *, stream: bool = False) -> dict[str, Any]:
    """A request that takes so long."""
    return {**(CHAT.streamed if stream else CHAT.request), "user": str(seconds)}


@asynccontextmanager
async def impatient(tmp_path: Path, way: Way) -> AsyncIterator[tuple[Running, ScriptedBackend]]:
    """Heads of 8 KiB in 0.3 s, bodies of 1 MiB in 0.4 s."""
    async with scripted(follow) as backend:
        settings = configuration(tmp_path, backend.url)
        settings["server"] |= {
            "max_body_mib": 1,
            "max_header_kib": 8,
            "header_timeout": HEADER_TIMEOUT,
            "body_timeout": BODY_TIMEOUT,
        }
        async with running(settings, tmp_path, way=way) as it:
            yield it, backend
