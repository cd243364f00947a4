"""One streamed completion, timed by its tokens.

Completions, since their first frame is the first token, in every version of vLLM, and since they
take a prompt as token ids.
"""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import httpx

from gateway.protocols.sse import Reader


@dataclass(frozen=True)
class Timing:
    """Seconds, and tokens as the engine counted them.

    Attributes:
        ttft: from the request sent to the first token.
        gaps: between later frames, which hold a token each, or more where the engine was ahead.
        cached: prompt tokens found in the prefix cache.
    """

    ttft: float
    gaps: tuple[float, ...]
    prompt: int
    cached: int


async def complete(
    client: httpx.AsyncClient, model: str, prompt: Sequence[int], tokens: int
) -> Timing:
    """Ask for `tokens` tokens and read them as they come.

    Raises:
        httpx.HTTPError: there was no answer, or an error for one.
        ValueError: the stream had no token, or does not say what it used.
    """
    body = {
        "model": model,
        "prompt": list(prompt),
        "max_tokens": tokens,
        "ignore_eos": True,
        "temperature": 0,
        "stream": True,
        "stream_options": {"include_usage": True},
    }
    marks: list[float] = []
    usage: dict[str, Any] | None = None
    began = time.perf_counter()
    async with client.stream("POST", "/v1/completions", json=body) as reply:
        reply.raise_for_status()
        reader = Reader()
        # Not by lines: to httpx U+2028 ends one, and the model's words may hold it.
        async for data in reply.aiter_bytes():
            now = time.perf_counter()
            for event in reader.feed(data):
                if event.data in (b"", b"[DONE]"):
                    continue
                frame = json.loads(event.data)
                if frame["choices"]:
                    marks.append(now)
                usage = frame.get("usage") or usage
    if not marks or usage is None:
        raise ValueError("a stream without a token, or without its usage")
    return Timing(
        ttft=marks[0] - began,
        gaps=tuple(later - earlier for earlier, later in pairwise(marks)),
        prompt=usage["prompt_tokens"],
        cached=(usage.get("prompt_tokens_details") or {}).get("cached_tokens") or 0,
    )
