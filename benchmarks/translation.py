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
from gateway.protocols.translate import Translation
from gateway.protocols.translate.messages import translate as translate_messages

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
    body = messages_request(REQUEST_BYTES)
    begun = translate_messages(body, model="m", request_id="r")
    return [
        Case(
            f"messages: a request of {len(body) // 1000} KB",
            lambda: [translate_messages(body, model="m", request_id="r") for _ in range(_CALLS)],
            MS_PER_REQUEST,
            "ms",
            _CALLS,
        ),
        *(
            Case(
                f"messages: an event with {kind}", _stream(begun, read), US_PER_EVENT, "µs", EVENTS
            )
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
    first = {"index": 0, "id": "c", "function": {"name": "write", "arguments": '{"text": "'}}
    piece = {"index": 0, "function": {"arguments": " word"}}
    return {
        "text": _events([{"content": " word"}] * EVENTS),
        "reasoning": _events([{"reasoning": " word"}] * EVENTS),
        "arguments": _events([{"tool_calls": [one]} for one in (first, *[piece] * (EVENTS - 1))]),
    }


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


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.translation", description=__doc__.partition(":")[0]
    )
    parser.add_argument("--rounds", type=int, default=20, help="rounds to take the median of")
    parser.add_argument("--json", type=Path, help="keep everything in this file")
    return parser.parse_args(arguments)


if __name__ == "__main__":
    sys.exit(main())
