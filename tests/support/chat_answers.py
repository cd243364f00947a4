"""Chat answers as backends give them: the frames of a stream, and the same answer whole."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

from hypothesis import strategies as st

Json = dict[str, Any]

_HEAD = {"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1, "model": "backend"}


def frame(delta: Json | None = None, finish: str | None = None, **choice: Any) -> Json:
    """A frame with one choice."""
    said = {"index": 0, "delta": delta or {}, "finish_reason": finish, **choice}
    return {**_HEAD, "choices": [said]}


def usage_frame(prompt: int = 7, cached: int = 4, completion: int = 2) -> Json:
    """The frame that states usage."""
    return {**_HEAD, "choices": [], "usage": usage(prompt, cached, completion)}


def usage(prompt: int = 7, cached: int = 4, completion: int = 2) -> Json:
    """Usage as vLLM states it."""
    return {
        "prompt_tokens": prompt,
        "completion_tokens": completion,
        "total_tokens": prompt + completion,
        "prompt_tokens_details": {"cached_tokens": cached},
    }


def call(index: int, arguments: str = "", **first: Any) -> Json:
    """The delta for a piece of a tool call; `id` and `name` stand in its first one."""
    function = {"arguments": arguments}
    if "name" in first:
        function["name"] = first.pop("name")
    return {"tool_calls": [{"index": index, "type": "function", **first, "function": function}]}


def sse(*frames: Json, done: bool = True) -> bytes:
    """Frames as bytes, with the closing `[DONE]`."""
    body = b"".join(b"data: " + json.dumps(one).encode() + b"\n\n" for one in frames)
    return body + (b"data: [DONE]\n\n" if done else b"")


@dataclass
class Answer:
    """One answer, in pieces.

    Attributes:
        calls: name and pieces of the arguments of each tool call.
        order: how the pieces of text and calls are interleaved; in order if empty.
        spelled: the name of the field for reasoning.
    """

    thoughts: list[str] = field(default_factory=list)
    texts: list[str] = field(default_factory=list)
    calls: list[tuple[str, list[str]]] = field(default_factory=list)
    order: list[int] = field(default_factory=list)
    finish: str = "stop"
    stop_reason: str | int | None = None
    spelled: str = "reasoning"

    def stream(self) -> bytes:
        """The bytes of the stream."""
        lanes: list[list[Json]] = [[{"content": text} for text in self.texts]]
        for index, (name, pieces) in enumerate(self.calls):
            lanes.append([call(index, id=f"call_{index}", name=name)])
            lanes[-1] += [call(index, piece) for piece in pieces]
        deltas: list[Json] = [{"role": "assistant", "content": ""}]
        deltas += [{self.spelled: thought} for thought in self.thoughts]
        deltas += _merged(lanes, self.order)
        return sse(
            *map(frame, deltas),
            frame({"content": ""}, self.finish, stop_reason=self.stop_reason),
            usage_frame(),
        )

    def whole(self) -> bytes:
        """The bytes of the reply."""
        calls = [
            {
                "id": f"call_{index}",
                "type": "function",
                "function": {"name": name, "arguments": "".join(pieces)},
            }
            for index, (name, pieces) in enumerate(self.calls)
        ]
        message = {
            "role": "assistant",
            "content": "".join(self.texts) or None,
            self.spelled: "".join(self.thoughts) or None,
            "tool_calls": calls,
        }
        choice = {
            "index": 0,
            "message": message,
            "finish_reason": self.finish,
            "stop_reason": self.stop_reason,
        }
        return json.dumps({**_HEAD, "choices": [choice], "usage": usage()}).encode()


def _merged(lanes: list[list[Json]], order: list[int]) -> list[Json]:
    """The lanes as one, each in its own order; those that `order` does not use up at the end."""
    merged: list[Json] = []
    waiting = [lane[:] for lane in lanes if lane]
    for number in order:
        if waiting:
            lane = waiting[number % len(waiting)]
            merged.append(lane.pop(0))
            waiting = [lane for lane in waiting if lane]
    return merged + [delta for lane in waiting for delta in lane]


def cut(text: str, places: list[int]) -> list[str]:
    """A text in pieces, none of them empty."""
    edges = sorted({place % (len(text) + 1) for place in places} | {0, len(text)})
    return [text[start:end] for start, end in pairwise(edges)]


_TEXT = st.text(st.characters(codec="utf-8"), min_size=1, max_size=8)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.floats(-1e6, 1e6) | _TEXT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(_TEXT, inner, max_size=3),
    max_leaves=8,
)
OBJECTS = st.dictionaries(_TEXT, JSON, max_size=4)
_PLACES = st.lists(st.integers(0, 200), max_size=6)


@st.composite
def arguments(draw: st.DrawFn) -> list[str]:
    """The pieces of a JSON object."""
    ascii_only = draw(st.booleans())
    return cut(json.dumps(draw(OBJECTS), ensure_ascii=ascii_only), draw(_PLACES))


def answers(interleaved: bool = False) -> st.SearchStrategy[Answer]:
    """Complete answers, their pieces in order or interleaved."""
    order = st.lists(st.integers(0, 3), max_size=20) if interleaved else st.just([])
    return st.builds(
        Answer,
        thoughts=st.lists(_TEXT, max_size=3),
        texts=st.lists(_TEXT, max_size=3),
        calls=st.lists(st.tuples(st.sampled_from(["read", "write"]), arguments()), max_size=3),
        order=order,
        finish=st.sampled_from(["stop", "length", "tool_calls", "content_filter"]),
        stop_reason=st.none() | st.just(128009) | st.just("END"),
        spelled=st.sampled_from(["reasoning", "reasoning_content"]),
    )
