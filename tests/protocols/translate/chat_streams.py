"""Chat streams for the translations' tests: fixed ones, drawn ones, and how they are played."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

from hypothesis import strategies as st

from gateway.protocols.sse import Reader
from gateway.protocols.translate import StreamTranslation

Json = dict[str, Any]

USAGE = {
    "prompt_tokens": 20,
    "completion_tokens": 9,
    "total_tokens": 29,
    "prompt_tokens_details": {"cached_tokens": 16},
    "completion_tokens_details": {"reasoning_tokens": 4},
}


def frame(delta: Json | None = None, finish: str | None = None, **more: Any) -> bytes:
    """One frame of a stream; without a delta it has no choices."""
    choices = [{"index": 0, "delta": delta, "finish_reason": finish}] if delta is not None else []
    head = {"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "m"}
    return b"data: " + json.dumps({**head, "choices": choices, **more}).encode() + b"\n\n"


def tool(
    index: int | None, arguments: Any = None, name: str | None = None, id: str | None = None
) -> Json:
    """A delta with a piece of a tool call."""
    return {
        "tool_calls": [
            {"index": index, "id": id, "function": {"name": name, "arguments": arguments}}
        ]
    }


def stream(*deltas: Json, finish: str = "stop", usage: Json | None = USAGE) -> bytes:
    """A complete stream that says `deltas`."""
    frames = [frame({"role": "assistant", "content": ""}), *map(frame, deltas), frame({}, finish)]
    if usage is not None:
        frames.append(frame(usage=usage))
    return b"".join(frames) + b"data: [DONE]\n\n"


def played(translation: StreamTranslation, pieces: Iterable[bytes]) -> bytes:
    """What the client gets for a stream that comes in `pieces`."""
    reader = Reader()
    out = [translation.feed(event) for piece in pieces for event in reader.feed(piece)]
    return b"".join(out) + translation.close()


def cut(data: bytes, sizes: list[int]) -> list[bytes]:
    """The data in pieces of the given sizes, the rest as the last."""
    pieces = []
    for size in sizes:
        pieces.append(data[:size])
        data = data[size:]
    return [*pieces, data]


_TEXT = st.text(max_size=6)
_NAMES = st.sampled_from(["shell", "agents__spawn", "patch", "never_offered"])


@st.composite
def deltas(draw: st.DrawFn) -> list[Json]:
    """What a model might say: text and reasoning in any order, calls side by side."""
    said: list[Json] = []
    calls = 0
    for _ in range(draw(st.integers(0, 10))):
        kind = draw(st.sampled_from(["content", "reasoning", "refusal", "call", "piece"]))
        if kind == "call":
            name, arguments = draw(_NAMES), draw(st.sampled_from(["", '{"input": "a']))
            said.append(tool(calls, arguments, name, f"call_{calls}"))
            calls += 1
        elif kind == "piece":
            if calls:
                said.append(tool(draw(st.integers(0, calls - 1)), draw(_TEXT)))
        else:
            said.append({kind: draw(_TEXT)})
    return said
