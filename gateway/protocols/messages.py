"""Streams of `/v1/messages` (Anthropic): what each event carries."""

from __future__ import annotations

from typing import Any

import msgspec

from gateway.protocols import usage
from gateway.protocols.seen import ERROR, NOTHING, TERMINAL, TOKEN, Seen, not_json
from gateway.protocols.sse import Event
from gateway.records import Usage


class _Block(msgspec.Struct, gc=False):
    type: str = ""
    text: Any = None
    thinking: Any = None


class _Delta(msgspec.Struct, gc=False):
    text: Any = None
    thinking: Any = None
    partial_json: Any = None
    stop_reason: Any = None


class _Message(msgspec.Struct, gc=False):
    usage: Any = None


class _Frame(msgspec.Struct, gc=False):
    type: str = ""
    delta: _Delta | None = None
    content_block: _Block | None = None
    message: _Message | None = None
    usage: Any = None
    error: Any = None


_decode = msgspec.json.Decoder(_Frame).decode


class MessagesStream:
    """Reads the events of one stream; `message_delta` completes the usage of `message_start`."""

    __slots__ = ("_usage",)

    def __init__(self) -> None:
        self._usage: Usage | None = None

    def feed(self, event: Event) -> Seen:
        try:
            frame = _decode(event.data)
        except (msgspec.DecodeError, RecursionError):
            seen = not_json(event.data)
            return NOTHING if seen is TERMINAL else seen  # chat's word for the end is not the end
        kind, delta = frame.type, frame.delta
        if frame.error is not None or kind == "error":
            return ERROR
        if kind == "content_block_delta":
            generated = delta is not None and (delta.text or delta.thinking or delta.partial_json)
            return TOKEN if generated else NOTHING
        if kind == "content_block_start":
            return TOKEN if _opens_generated(frame.content_block) else NOTHING
        if kind == "message_stop":
            return TERMINAL
        if kind == "message_start" and frame.message is not None:
            self._usage = usage.of_messages(frame.message.usage)
            return Seen(usage=self._usage)
        if kind == "message_delta":
            self._usage = usage.of_messages(frame.usage, self._usage)
            finished = delta is not None and delta.stop_reason is not None
            return Seen(usage=self._usage, finished=finished)
        return NOTHING


def _opens_generated(block: _Block | None) -> bool:
    """Whether a block starts with something generated: a tool's name, or text already in it."""
    if block is None:
        return False
    return bool(block.type == "tool_use" or block.text or block.thinking)
