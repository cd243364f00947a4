"""What translating a request and its answer costs: `python -m benchmarks.translation --help`.

CPU time of one process without any network. An event is timed from its complete bytes to the
client's bytes; a request from its body to the chat body.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.console import Console

from benchmarks.gates import Gate, failed
from benchmarks.report import machine, save
from gateway.protocols.sse import Event, Reader
from gateway.protocols.translate import Translation, messages, responses

REQUEST_BYTES = 100_000
EVENTS = 2000
MS_PER_REQUEST = 1.0
US_PER_EVENT = 25.0

_CALLS = 20
_PROSE = "The scheduler fills its token budget with running sequences first.\n"


@dataclass(frozen=True, slots=True)
class Case:
    """Something timed.

    Attributes:
        limit: the most one run may take, in `unit`.
        unit: `µs` or `ms`, of CPU.
        runs: how many times `once` does the thing.
    """

    name: str
    once: Callable[[], object]
    limit: float
    unit: str
    runs: int = 1

    def gate(self, rounds: int) -> Gate:
        """Time it, after one round to warm up."""
        seconds = statistics.median([self._seconds() for _ in range(rounds + 1)][1:])
        scale = {"µs": 1e6, "ms": 1e3}[self.unit]
        return Gate(self.name, seconds * scale, self.limit, self.unit)

    def _seconds(self) -> float:
        started = time.process_time()
        self.once()
        return (time.process_time() - started) / self.runs


def main(arguments: Sequence[str] | None = None) -> int:
    """Time every case; 0 if no gate is broken, else 1."""
    options = _options(arguments)
    console = Console(highlight=False, width=120)
    gates = [case.gate(options.rounds) for case in cases()]
    for gate in gates:
        console.print(str(gate), markup=False)
    if options.json is not None:
        save(options.json, {"machine": machine(), "rounds": options.rounds}, gates)
    return 1 if failed(gates) else 0


def cases() -> list[Case]:
    """All that is timed."""
    return [
        *_cases("messages", as_messages, messages_request(REQUEST_BYTES)),
        *_cases("responses", as_responses, responses_request(REQUEST_BYTES)),
    ]


def as_messages(body: bytes) -> Translation:
    return messages.translate(body, model="m", request_id="r")


def as_responses(body: bytes) -> Translation:
    return responses.translate(body, model="m", request_id="r", created=0)


def _cases(api: str, translate: Callable[[bytes], Translation], body: bytes) -> list[Case]:
    begun = translate(body)
    return [
        Case(
            f"{api}: a request of {len(body) // 1000} KB",
            lambda: [translate(body) for _ in range(_CALLS)],
            MS_PER_REQUEST,
            "ms",
            _CALLS,
        ),
        *(
            Case(f"{api}: an event with {kind}", _stream(begun, read), US_PER_EVENT, "µs", EVENTS)
            for kind, read in chat_events().items()
        ),
    ]


def _stream(translation: Translation, read: Sequence[Event]) -> Callable[[], object]:
    def once() -> None:
        feed = translation.stream().feed
        for event in read:
            feed(event)

    return once


def chat_events() -> dict[str, list[Event]]:
    """The events of chat streams, by what they carry."""
    return {
        "text": _events([{"content": " word"}] * EVENTS),
        "reasoning": _events([{"reasoning": " word"}] * EVENTS),
        "arguments": _events(_call("tool_1", '{"text": "', " word")),
        "custom input": _events(_call("patch", '{"input": "', r" wo\"rd\n")),
    }


def _call(name: str, begin: str, more: str) -> list[dict[str, Any]]:
    first = {"index": 0, "id": "c", "function": {"name": name, "arguments": begin}}
    piece = {"index": 0, "function": {"arguments": more}}
    return [{"tool_calls": [one]} for one in (first, *[piece] * (EVENTS - 1))]


def _events(deltas: list[dict[str, Any]]) -> list[Event]:
    head = {"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1, "model": "b"}
    frames = [
        {**head, "choices": [{"index": 0, "delta": delta, "logprobs": None, "finish_reason": None}]}
        for delta in deltas
    ]
    return Reader().feed(b"".join(b"data: %b\n\n" % json.dumps(one).encode() for one in frames))


def messages_request(size: int) -> bytes:
    """A conversation of a coding agent with 24 tools, about `size` bytes long."""
    schema = {"type": "object", "properties": {f"field_{n}": {"type": "string"} for n in range(8)}}
    request: dict[str, Any] = {
        "model": "backend",
        "max_tokens": 32000,
        "stream": True,
        "system": [{"type": "text", "text": _PROSE * 120, "cache_control": {"type": "ephemeral"}}],
        "tools": [
            {"name": f"tool_{n}", "description": _PROSE * 15, "input_schema": schema}
            for n in range(24)
        ],
        "messages": [{"role": "user", "content": "Make it faster."}],
    }
    left = size - len(json.dumps(request))
    turn = _messages_turn("toolu_0")
    for number in range(left // len(json.dumps(turn)) + 1):
        request["messages"] += _messages_turn(f"toolu_{number}")
    return json.dumps(request).encode()


def _messages_turn(call: str) -> list[dict[str, Any]]:
    answer = [
        {"type": "thinking", "thinking": _PROSE * 3, "signature": "s"},
        {"type": "text", "text": "Reading on."},
        {"type": "tool_use", "id": call, "name": "tool_1", "input": {"field_1": _PROSE * 2}},
    ]
    result = {"type": "tool_result", "tool_use_id": call, "content": _PROSE * 20}
    return [{"role": "assistant", "content": answer}, {"role": "user", "content": [result]}]


def responses_request(size: int) -> bytes:
    """What Codex sends with 22 tools of all kinds, about `size` bytes long."""
    schema = {"type": "object", "properties": {f"field_{n}": {"type": "string"} for n in range(8)}}
    functions = [
        {
            "type": "function",
            "name": f"tool_{n}",
            "description": _PROSE * 15,
            "strict": False,
            "parameters": schema,
        }
        for n in range(20)
    ]
    grammar = {"type": "grammar", "syntax": "lark", "definition": _PROSE * 15}
    request: dict[str, Any] = {
        "model": "backend",
        "stream": True,
        "store": False,
        "include": ["reasoning.encrypted_content"],
        "reasoning": {"effort": "medium", "summary": "auto"},
        "tool_choice": "auto",
        "parallel_tool_calls": False,
        "prompt_cache_key": "k",
        "tools": [
            *functions[5:],
            {"type": "namespace", "name": "agents", "tools": functions[:5]},
            {"type": "custom", "name": "patch", "description": _PROSE, "format": grammar},
            {"type": "web_search"},
        ],
        "input": [
            _said("developer", _PROSE * 120),
            _said("developer", _PROSE * 20),
            _said("user", "Make it faster."),
        ],
    }
    left = size - len(json.dumps(request))
    turn = _responses_turn("call_0")
    for number in range(left // len(json.dumps(turn)) + 1):
        request["input"] += _responses_turn(f"call_{number}")
    return json.dumps(request).encode()


def _responses_turn(call: str) -> list[dict[str, Any]]:
    thought = {"type": "reasoning_text", "text": _PROSE * 3}
    arguments = json.dumps({"field_1": _PROSE * 2})
    called = {"type": "function_call", "call_id": call, "name": "tool_6", "arguments": arguments}
    return [
        {"type": "reasoning", "summary": [], "content": [thought], "encrypted_content": None},
        _said("assistant", "Reading on."),
        called,
        {"type": "function_call_output", "call_id": call, "output": _PROSE * 20},
    ]


def _said(role: str, text: str) -> dict[str, Any]:
    kind = "output_text" if role == "assistant" else "input_text"
    return {"type": "message", "role": role, "content": [{"type": kind, "text": text}]}


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.translation", description=__doc__.partition(":")[0]
    )
    parser.add_argument("--rounds", type=int, default=20, help="rounds to take the median of")
    parser.add_argument("--json", type=Path, help="keep everything in this file")
    return parser.parse_args(arguments)


if __name__ == "__main__":
    sys.exit(main())
