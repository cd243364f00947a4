"""When a stream brings its first token, and how many tokens an answer cost.

The first token is the first event that carries something generated: text, reasoning, a refusal,
audio, or a tool call's name or arguments. Role frames, announcements, empty text, usage and
comments do not count. `tests/protocols/vectors/` holds the table, one case an event.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec

from gateway.protocols import usage
from gateway.protocols.chat import ChatStream
from gateway.protocols.messages import MessagesStream
from gateway.protocols.responses import ResponsesStream
from gateway.protocols.seen import NOTHING, Seen
from gateway.protocols.sse import Event
from gateway.records import Api, Usage


class Observer:
    """Reads the events of one stream, in order.

    Args:
        api: what the stream speaks; an API without streams gives events that say nothing.
        echo_prompt: text that a completion repeats before it generates, if it was asked to.

    Attributes:
        feed: takes the next event, says what it carries.
    """

    __slots__ = ("feed",)

    def __init__(self, api: Api, echo_prompt: str | None = None) -> None:
        self.feed: Callable[[Event], Seen]
        if api is Api.CHAT or api is Api.COMPLETIONS:
            self.feed = ChatStream(echo_prompt).feed
        elif api is Api.MESSAGES:
            self.feed = MessagesStream().feed
        elif api is Api.RESPONSES:
            self.feed = ResponsesStream().feed
        else:
            self.feed = _nothing


class _Reply(msgspec.Struct, gc=False):
    id: Any = None
    usage: Any = None


_decode = msgspec.json.Decoder(_Reply).decode


def usage_of(api: Api, body: bytes) -> Usage | None:
    """The usage that an unstreamed reply states, or None where it states none."""
    reply = _reply(body)
    if reply is None:
        return None
    if api is Api.MESSAGES:
        return usage.of_messages(reply.usage)
    if api is Api.RESPONSES:
        return usage.of_responses(reply.usage)
    return usage.of_chat(reply.usage)


def response_id_of(body: bytes) -> str | None:
    """The id by which a later request may refer to an unstreamed reply."""
    reply = _reply(body)
    return reply.id if reply is not None and isinstance(reply.id, str) else None


def _reply(body: bytes) -> _Reply | None:
    try:
        return _decode(body)
    except (msgspec.DecodeError, RecursionError):
        return None


def _nothing(_: Event) -> Seen:
    return NOTHING
