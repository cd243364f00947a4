"""The sweep's client, on streams as engines send them."""

from __future__ import annotations

import json
from typing import Any

import httpx
import pytest

from benchmarks.engine.client import complete

USAGE = {"prompt_tokens": 7, "prompt_tokens_details": {"cached_tokens": 3}}


def engine(*frames: Any, ensure_ascii: bool = False) -> httpx.AsyncClient:
    """A stand-in that sends these frames."""
    events = [json.dumps(one, ensure_ascii=ensure_ascii) for one in frames]
    content = "".join(f"data: {one}\n\n" for one in [*events, "[DONE]"]).encode()
    transport = httpx.MockTransport(lambda _: httpx.Response(200, content=content))
    return httpx.AsyncClient(transport=transport, base_url="http://engine")


def token(text: str) -> dict[str, Any]:
    return {"choices": [{"text": text}]}


async def test_any_text_is_a_token() -> None:
    """A model of random weights says U+2028 and U+0085, which end a line to some."""
    frames = [token(text) for text in ("a", "\u2028", "\x85", "\x1c", 'data: {"')]
    async with engine(*frames, {"choices": [], "usage": USAGE}) as client:
        timing = await complete(client, "m", [1, 2], 5)
    assert timing.ttft > 0 and len(timing.gaps) == 4
    assert (timing.prompt, timing.cached) == (7, 3)


@pytest.mark.parametrize("frames", [[token("a")], [{"choices": [], "usage": USAGE}]])
async def test_a_stream_that_tells_too_little_is_refused(frames: list[Any]) -> None:
    async with engine(*frames) as client:
        with pytest.raises(ValueError, match="without a token, or without its usage"):
            await complete(client, "m", [1], 1)
