"""Replies that end the generation when the client leaves, streamed or not."""

from __future__ import annotations

import asyncio
from array import array
from collections.abc import AsyncIterator, Callable

import msgspec
from starlette.responses import Response
from starlette.types import Message, Receive, Scope, Send

from gateway.simulator import tokenizer
from gateway.simulator.engine import Engine, Generation

DONE = b"data: [DONE]\n\n"

_encode = msgspec.json.encode


class GenerationReply(Response):
    """A reply made from a generation; the connection's end aborts it."""

    def __init__(self, engine: Engine, generation: Generation) -> None:
        super().__init__()
        self.engine = engine
        self.generation = generation

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        watcher = asyncio.create_task(self._abort_when_left(receive))
        try:
            await self.answer(send)
        finally:
            watcher.cancel()
            self.engine.abort(self.generation)

    async def answer(self, send: Send) -> None:
        raise NotImplementedError

    async def _abort_when_left(self, receive: Receive) -> None:
        while (await receive())["type"] != "http.disconnect":
            pass
        self.engine.abort(self.generation)


class WholeReply(GenerationReply):
    """One JSON body when everything is generated.

    Args:
        render: the body, given the answer's text.
    """

    def __init__(
        self, engine: Engine, generation: Generation, render: Callable[[str], object]
    ) -> None:
        super().__init__(engine, generation)
        self._render = render

    async def answer(self, send: Send) -> None:
        text = tokenizer.decode(await self.generation.all_tokens())
        if self.generation.sequence.finish_reason == "abort":
            # Nobody is there, unless the engine died: then the server breaks the connection off.
            return
        body = _encode(self._render(text))
        length = str(len(body)).encode()
        await send(_start(b"application/json", (b"content-length", length)))
        await send({"type": "http.response.body", "body": body})


class EventReply(GenerationReply):
    """Server-sent events, each sent as soon as it is there.

    The head goes out at once, before the engine has begun.

    Args:
        frames: the bytes of the events; ends early if the generation is aborted.
    """

    def __init__(
        self, engine: Engine, generation: Generation, frames: AsyncIterator[bytes]
    ) -> None:
        super().__init__(engine, generation)
        self._frames = frames

    async def answer(self, send: Send) -> None:
        await send(_start(b"text/event-stream; charset=utf-8", (b"cache-control", b"no-cache")))
        async for frame in self._frames:
            await send({"type": "http.response.body", "body": frame, "more_body": True})
        if self.generation.sequence.finish_reason != "abort":
            await send({"type": "http.response.body", "body": b""})


def data(content: object) -> bytes:
    """An event without a name."""
    return b"data: " + _encode(content) + b"\n\n"


def event(name: str, content: object) -> bytes:
    """An event with a name."""
    return b"event: " + name.encode() + b"\ndata: " + _encode(content) + b"\n\n"


class Around:
    """An event of which only one string varies, encoded but for that string.

    Args:
        frame: the event with `SLOT` where the string stands.
    """

    SLOT = "\x00slot"
    _ENCODED = _encode(SLOT)

    def __init__(self, frame: bytes) -> None:
        self._before, self._after = frame.split(self._ENCODED)

    def __call__(self, tokens: array[int]) -> bytes:
        return self._before + _encode(tokenizer.decode(tokens)) + self._after


def _start(media_type: bytes, *headers: tuple[bytes, bytes]) -> Message:
    return {
        "type": "http.response.start",
        "status": 200,
        "headers": [(b"content-type", media_type), *headers],
    }
