"""What is asked of every proxy: four kinds of request, the same bytes for all.

The stub obeys a text in the conversation (see `stub.c`), since a message's content is the one
thing that every proxy hands on unchanged.
"""

from __future__ import annotations

import json
import random
from dataclasses import dataclass
from functools import cached_property
from typing import Any

MODEL = "tiny"
PATH = "/v1/chat/completions"
SESSIONS = 64
"""Conversations a load is spread over, so that a proxy with session affinity uses all backends."""


@dataclass(frozen=True)
class Workload:
    """One kind of request.

    Attributes:
        events: content events in its reply, 0 for an unstreamed one.
        interval_ms: milliseconds between them, 0 for all at once.
        connections: how many requests are under way at a time.
        first_ms: milliseconds before the first of them, or before an unstreamed reply.
        padding: characters of conversation and tools to carry beside the question.
    """

    name: str
    about: str
    connections: int
    events: int = 0
    interval_ms: int = 0
    first_ms: int = 0
    padding: int = 0

    def body(self, model: str) -> bytes:
        """The request body, naming the model as this proxy's clients do."""
        return json.dumps({"model": model, **self._rest}, separators=(",", ":")).encode()

    @cached_property
    def _rest(self) -> dict[str, Any]:
        steering = (
            f"stub(events={self.events or 1} interval={self.interval_ms} first={self.first_ms})"
        )
        question = {"role": "user", "content": f"Greet the world in a few words. {steering}"}
        rest: dict[str, Any] = {"messages": [question]}
        if self.padding:
            history, tools = _agent_conversation(self.padding)
            rest = {"messages": [*history, question], "tools": tools}
        if self.events:
            rest["stream"] = True
        return rest


SMALL = Workload("small", "JSON reply, 64 connections", connections=64)
BURST = Workload("burst", "50 events at once, 64 connections", connections=64, events=50)
PACED = Workload(
    "paced", "50 events, 20 ms apart, 32 streams", connections=32, events=50, interval_ms=20
)
BIG = Workload("big", "107 KB request body, 32 connections", connections=32, padding=106_000)
FIRST_BYTE = Workload("first byte", "5 events at once, 100/s", connections=0, events=5)

CPU_WORKLOADS = (SMALL, BURST, PACED, BIG)


def headers(key: str) -> dict[str, str]:
    """Request headers without the session's."""
    return {"authorization": f"Bearer {key}", "content-type": "application/json"}


def session_header(number: int) -> tuple[str, str]:
    """Which conversation a request belongs to."""
    return "x-session-id", f"session-{number % SESSIONS}"


def _agent_conversation(size: int) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """A coding agent's history and tools of about `size` characters, the same every time.

    The tool schemas hold a `model` property, and the prose quotes and backslashes: what makes
    finding the top-level field, and scanning strings, as hard as it is in life.
    """
    words = random.Random(1)
    tools = [_tool(number, words) for number in range(12)]
    history: list[dict[str, Any]] = [{"role": "system", "content": _prose(words, 12_000)}]
    while len(json.dumps([tools, history])) < size:
        call = f"call_{len(history)}"
        arguments = json.dumps({"path": "src/main.py", "model": _prose(words, 60)})
        function = {"name": "tool_1", "arguments": arguments}
        history += [
            {"role": "user", "content": _prose(words, 700)},
            {
                "role": "assistant",
                "content": None,
                "tool_calls": [{"id": call, "type": "function", "function": function}],
            },
            {"role": "tool", "tool_call_id": call, "content": _prose(words, 1_100)},
        ]
    return history, tools


def _tool(number: int, words: random.Random) -> dict[str, Any]:
    names = ["path", "model", "stream", "pattern", "limit"]
    properties = {n: {"type": "string", "description": _prose(words, 120)} for n in names}
    return {
        "type": "function",
        "function": {
            "name": f"tool_{number}",
            "description": _prose(words, 1_400),
            "parameters": {"type": "object", "properties": properties, "required": ["path"]},
        },
    }


def _prose(words: random.Random, length: int) -> str:
    vocabulary = ["def", "return", '"name"', "C:\\src", "the", "of", "function", "line\n", "value"]
    text = ""
    while len(text) < length:
        text += words.choice(vocabulary) + " "
    return text
