"""Chat replies and the frames of chat streams, typed, as both translations read them.

The one fact on which engines differ is where reasoning stands: vLLM since 0.12 says `reasoning`,
older ones and DeepSeek `reasoning_content`. `Delta.thought` is whichever is there.
"""

from __future__ import annotations

from typing import Any

import msgspec

from gateway.protocols import usage
from gateway.protocols.sse import Event
from gateway.records import Usage


class Function(msgspec.Struct, gc=False):
    """What a tool call calls.

    Attributes:
        arguments: JSON text, in a stream a piece of it. Some servers give the object itself.
    """

    name: str | None = None
    arguments: str | dict[str, Any] | None = None

    @property
    def text(self) -> str:
        """The arguments as JSON text, empty where there are none."""
        if isinstance(self.arguments, dict):
            return msgspec.json.encode(self.arguments).decode()
        return self.arguments or ""


class ToolCall(msgspec.Struct, gc=False):
    """One call, or in a stream what is new of it.

    Attributes:
        index: which call of its message a stream's piece belongs to; some servers leave it out.
        id: in a stream with the first piece only.
    """

    index: int | None = None
    id: str | None = None
    function: Function | None = None


class Delta(msgspec.Struct, gc=False):
    """What an answer says: of a stream's frame what is new, of a whole reply all of it."""

    content: str | None = None
    reasoning: str | None = None
    reasoning_content: str | None = None
    refusal: str | None = None
    tool_calls: list[ToolCall] | None = None

    @property
    def thought(self) -> str | None:
        """The reasoning, under either of its names."""
        return self.reasoning or self.reasoning_content


class Choice(msgspec.Struct, gc=False):
    """One of the answers; a translation asks for one only.

    Attributes:
        delta: in a stream.
        message: in a whole reply.
        finish_reason: `stop`, `length`, `tool_calls`, `content_filter`, or the server's own word;
            None or empty until there is one.
        stop_reason: vLLM's: the stop sequence that was met, or a token's number.
    """

    index: int = 0
    delta: Delta | None = None
    message: Delta | None = None
    finish_reason: str | None = None
    stop_reason: str | int | None = None


class Chat(msgspec.Struct, gc=False):
    """A frame or a reply.

    Attributes:
        choices: empty in the frame that states usage.
        usage: as the server states it; `counts` has it in the gateway's form.
    """

    choices: list[Choice] | None = None
    usage: dict[str, Any] | None = None
    error: Any = None

    @property
    def counts(self) -> Usage | None:
        """The token counts; `prompt` includes the cached ones."""
        return usage.of_chat(self.usage)


_decode = msgspec.json.Decoder(Chat).decode
# Reasons to stop with which what there is of the answer is no answer.
_GAVE_UP = frozenset({"abort", "error"})


def frame(event: Event) -> Chat | None:
    """The frame an event carries; None for comments and the closing `[DONE]`.

    Raises:
        ValueError: it carries something else, an error for one.
    """
    data = event.data
    if data[:1] != b"{" and (not (text := data.strip()) or text[:6] == b"[DONE]"):
        return None
    found = _chat(data)
    if found.choices is None and found.usage is None:
        raise ValueError("the frame has no choices")
    return found


def reply(body: bytes) -> tuple[Choice, Chat]:
    """A whole reply and its first choice, whose `message` is there.

    Raises:
        ValueError: it is no chat reply, or one that the server gave up on.
    """
    found = _chat(body)
    if not found.choices or found.choices[0].message is None:
        raise ValueError("the reply has no message")
    return found.choices[0], found


def _chat(data: bytes) -> Chat:
    try:
        found = _decode(data)
    except (msgspec.DecodeError, RecursionError) as fault:
        raise ValueError(f"not of the chat API: {fault}") from None
    if found.error is not None:
        raise ValueError("the server reports an error")
    for choice in found.choices or ():
        if choice.finish_reason in _GAVE_UP:
            raise ValueError(f"the server gave up on the answer: {choice.finish_reason}")
    return found
