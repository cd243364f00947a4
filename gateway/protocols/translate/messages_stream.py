"""A chat stream as a Messages stream.

Messages has one block after the other, chat has text, reasoning and several tool calls side by
side. So there is one open block, and what belongs to another one waits only where the open one is
a tool call whose arguments are not complete.
"""

from __future__ import annotations

from typing import Any

import msgspec

from gateway.errors import GatewayError
from gateway.protocols import faults
from gateway.protocols.sse import Event
from gateway.protocols.translate import chat_frames, messages_reply
from gateway.protocols.translate.messages_open import TEXT, THINKING, Block, Call
from gateway.records import Api, Usage

_encode = msgspec.json.encode

_START = b'event: content_block_start\ndata: {"type":"content_block_start","index":%d,'
_DELTA = b'event: content_block_delta\ndata: {"type":"content_block_delta","index":%d,"delta":{'
_STOP = b'event: content_block_stop\ndata: {"type":"content_block_stop","index":%d}\n\n'
_END = b"}}\n\n"

_SIGNATURE = b'"type":"signature_delta","signature":'


class MessagesFromChat:
    """One stream; see `StreamTranslation`.

    Args:
        model: the name the client used.
        request_id: what ids are made from.
    """

    __slots__ = (
        "_block",
        "_calls",
        "_counts",
        "_finish",
        "_head",
        "_index",
        "_model",
        "_number",
        "_opened",
        "_out",
        "_refused",
        "_request_id",
        "_started",
        "_stop",
        "_waiting",
    )

    def __init__(self, *, model: str, request_id: str) -> None:
        self._model = model
        self._request_id = request_id
        self._out: list[bytes] = []
        self._opened = self._started = self._refused = False
        self._index = self._number = 0
        self._head = b""
        self._block: Block | None = None
        self._waiting: list[Block] = []
        self._calls: dict[int | str, Call] = {}
        self._counts: Usage | None = None
        self._finish: str | None = None
        self._stop: str | int | None = None

    def feed(self, event: Event) -> bytes:
        frame = chat_frames.frame(event)
        if frame is None:
            return b""
        if frame.usage is not None:
            self._counts = frame.counts or self._counts
        if not self._opened:
            self._open()
        for choice in frame.choices or ():
            if choice.index == 0:
                self._take(choice)
        return self._sent()

    def close(self) -> bytes:
        if not self._opened:
            self._open()
        self._end_blocks()
        if self._index == 0:
            # As in a whole reply, there is a block to look at.
            self._block = Block(TEXT)
            self._end_blocks()
        stopped = messages_reply.stop(
            self._finish, self._stop, calls=bool(self._calls), refused=self._refused
        )
        usage = messages_reply.usage(self._counts)
        self._event("message_delta", {"delta": stopped, "usage": usage})
        self._event("message_stop", {})
        return self._sent()

    def fail(self, error: GatewayError, request_id: str) -> bytes:
        """As `StreamTranslation` has it, but open blocks stay open.

        A client may run a tool once its block is closed, and this one's input is a fragment.
        """
        return faults.stream_event(Api.MESSAGES, error, request_id, 0)

    def keep_alive(self) -> bytes:
        return faults.keepalive(Api.MESSAGES)

    def _take(self, choice: chat_frames.Choice) -> None:
        delta = choice.delta
        if delta is not None:
            thought = delta.thought
            if thought:
                self._say(THINKING, thought)
            if delta.content:
                self._say(TEXT, delta.content)
            if delta.refusal:
                self._refused = True
                self._say(TEXT, delta.refusal)
            for piece in delta.tool_calls or ():
                self._call(piece)
        if choice.finish_reason:
            self._finish, self._stop = choice.finish_reason, choice.stop_reason
            self._end_blocks()

    def _say(self, field: bytes, text: str) -> None:
        block = self._block
        if block is None or block.field is not field or self._waiting:
            block = self._waiting[-1] if self._waiting else None
            if block is None or block.field is not field:
                block = Block(field)
                self._waiting.append(block)
        block.take(text)
        self._advance()

    def _call(self, piece: chat_frames.ToolCall) -> None:
        call = self._called(piece)
        if piece.function is not None:
            call.name = call.name or piece.function.name or ""
            call.take(piece.function.text)
        self._advance()

    def _called(self, piece: chat_frames.ToolCall) -> Call:
        """The call that a piece belongs to, made if it is new.

        By index, since older vLLM gives every piece an id of its own; by id where a server leaves
        the index out, and by order where it leaves out both. Some servers send every call whole
        with index 0.
        """
        key: int | str | None = piece.index if piece.index is not None else piece.id
        if not key and key != 0:
            key = next(reversed(self._calls), 0)
        call = self._calls.get(key)
        if call is None or (not call.unfinished and _begins(piece)):
            call = Call(piece.id or messages_reply.call_id(self._request_id, self._number))
            self._number += 1
            self._calls[key] = call
            self._waiting.append(call)
        return call

    def _advance(self) -> None:
        """Send what can be sent: of the open block, then of those that wait behind it."""
        while True:
            block = self._block
            if block is not None:
                if not self._started and block.ready:
                    self._start(block)
                if self._started and block.pending:
                    self._flush(block)
                if not self._waiting or block.unfinished:
                    return
                self._end(block)
            elif not self._waiting:
                return
            self._block = self._waiting.pop(0)

    def _end_blocks(self) -> None:
        """Close the open block, and send those that wait, finished or not."""
        while self._block is not None or self._waiting:
            if self._block is None:
                self._block = self._waiting.pop(0)
            self._end(self._block)

    def _start(self, block: Block) -> None:
        self._started = True
        self._head = _DELTA % self._index + block.field
        start = b'"content_block":' + _encode(block.start())
        self._out.append(_START % self._index + start + b"}\n\n")

    def _flush(self, block: Block) -> None:
        self._out.append(self._head + _encode(block.pending) + _END)
        block.pending = ""

    def _end(self, block: Block) -> None:
        block.finish()
        if not self._started:
            self._start(block)
        if block.pending:
            self._flush(block)
        if block.field is THINKING:
            signature = _encode(messages_reply.signed(self._request_id))
            self._out.append(_DELTA % self._index + _SIGNATURE + signature + _END)
        self._out.append(_STOP % self._index)
        self._index += 1
        self._block = None
        self._started = False

    def _open(self) -> None:
        self._opened = True
        message = messages_reply.opening(self._model, self._request_id)
        message["usage"] = messages_reply.usage(self._counts)
        self._event("message_start", {"message": message})

    def _event(self, name: str, fields: dict[str, Any]) -> None:
        data = _encode({"type": name, **fields})
        self._out.append(b"event: %b\ndata: %b\n\n" % (name.encode(), data))

    def _sent(self) -> bytes:
        sent = b"".join(self._out)
        self._out.clear()
        return sent


def _begins(piece: chat_frames.ToolCall) -> bool:
    """Whether it can be the beginning of a call."""
    function = piece.function
    return function is not None and bool(function.name and function.text)
