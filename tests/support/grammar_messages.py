"""The grammar of a Messages stream, as Anthropic documents it and clients rely on it."""

from __future__ import annotations

import json
from typing import Any

_STARTS: dict[str, set[str]] = {
    "text": {"type", "text"},
    "thinking": {"type", "thinking", "signature"},
    "tool_use": {"type", "id", "name", "input"},
}
_DELTAS = {
    "text_delta": ("text", "text"),
    "thinking_delta": ("thinking", "thinking"),
    "signature_delta": ("thinking", "signature"),
    "input_json_delta": ("tool_use", "partial_json"),
}
_STOPS = {"end_turn", "max_tokens", "stop_sequence", "tool_use", "refusal", "pause_turn"}
_COUNTS = (
    "input_tokens",
    "output_tokens",
    "cache_read_input_tokens",
    "cache_creation_input_tokens",
)


def events(stream: bytes) -> list[dict[str, Any]]:
    """The events of a stream, checked for their frames; pings are left out."""
    found: list[dict[str, Any]] = []
    assert not stream or stream.endswith(b"\n\n"), "the last event is not ended"
    for block in stream.decode().split("\n\n")[:-1]:
        name, _, data = block.partition("\n")
        assert name.startswith("event: ") and data.startswith("data: "), block
        event = json.loads(data.removeprefix("data: "))
        assert event["type"] == name.removeprefix("event: "), block
        if event["type"] != "ping":
            found.append(event)
    return found


def check(stream: bytes) -> list[dict[str, Any]]:
    """Check a whole stream; return its events.

    Raises:
        AssertionError: it breaks the grammar, or ends before `message_stop` or an error.
    """
    found = events(stream)
    grammar = _Grammar()
    for event in found:
        grammar.take(event)
    assert grammar.ended, "the stream ends too early"
    return found


class _Grammar:
    """What may come next.

    Attributes:
        ended: nothing may come any more.
    """

    def __init__(self) -> None:
        self.ended = False
        self._begun = False
        self._stopped = False
        self._blocks = 0
        self._open: str | None = None
        self._signed = False

    def take(self, event: dict[str, Any]) -> None:
        kind = event["type"]
        assert not self.ended, f"{kind} after the end"
        if kind == "error":
            assert event["error"]["type"] and event["error"]["message"]
            self.ended = True
            return
        assert self._begun == (kind != "message_start"), f"{kind} out of order"
        assert not self._stopped or kind == "message_stop", f"{kind} after message_delta"
        getattr(self, f"_{kind}")(event)

    def _message_start(self, event: dict[str, Any]) -> None:
        message = event["message"]
        assert (message["type"], message["role"]) == ("message", "assistant")
        assert message["id"].startswith("msg_") and message["model"]
        assert message["content"] == [] and message["stop_reason"] is None
        _check_usage(message["usage"])
        self._begun = True

    def _content_block_start(self, event: dict[str, Any]) -> None:
        block = event["content_block"]
        assert self._open is None, "a block starts within another one"
        assert event["index"] == self._blocks, "the indexes have a gap"
        assert set(block) == _STARTS[block["type"]], block
        if block["type"] == "tool_use":
            assert block["id"] and block["input"] == {}
        self._open, self._signed = block["type"], False

    def _content_block_delta(self, event: dict[str, Any]) -> None:
        delta = event["delta"]
        kind, field = _DELTAS[delta["type"]]
        assert event["index"] == self._blocks and self._open == kind, "a delta of no open block"
        assert delta[field], "a delta that says nothing"
        assert not self._signed, "a delta after the signature"
        self._signed = delta["type"] == "signature_delta"

    def _content_block_stop(self, event: dict[str, Any]) -> None:
        assert event["index"] == self._blocks and self._open is not None, "no block is open"
        assert self._signed or self._open != "thinking", "thinking without a signature"
        self._blocks += 1
        self._open = None

    def _message_delta(self, event: dict[str, Any]) -> None:
        assert self._open is None, "the message ends within a block"
        assert event["delta"]["stop_reason"] in _STOPS
        sequence = event["delta"]["stop_sequence"]
        assert (sequence is not None) == (event["delta"]["stop_reason"] == "stop_sequence")
        _check_usage(event["usage"])
        self._stopped = True

    def _message_stop(self, event: dict[str, Any]) -> None:
        assert self._stopped, "no message_delta"
        self.ended = True


def _check_usage(usage: dict[str, Any]) -> None:
    for name in _COUNTS:
        assert type(usage[name]) is int and usage[name] >= 0, usage
