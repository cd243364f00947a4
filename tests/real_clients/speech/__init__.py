"""What a scripted engine says, in the words of each API: whole, or as the events of a stream."""

from __future__ import annotations

import json
from typing import Any

from gateway.records import Api
from tests.real_clients.speech import chat, messages, responses
from tests.real_clients.speech.answer import (
    CACHED_TOKENS,
    COMPLETION_TOKENS,
    PROMPT_TOKENS,
    Answer,
)

__all__ = [
    "CACHED_TOKENS",
    "COMPLETION_TOKENS",
    "PROMPT_TOKENS",
    "Answer",
    "events",
    "named",
    "unnamed",
    "whole",
]

DONE = b"data: [DONE]\n\n"


def events(api: Api, answer: Answer) -> list[bytes]:
    """A whole stream. The first two events carry no token; the last one ends it."""
    if api is Api.MESSAGES:
        return [named(one) for one in messages.events(answer)]
    if api is Api.RESPONSES:
        listed = enumerate(responses.events(answer))
        return [named({**one, "sequence_number": number}) for number, one in listed]
    return [*(unnamed(one) for one in chat.events(answer)), DONE]


def whole(api: Api, answer: Answer) -> bytes:
    """The same as one reply."""
    if api is Api.MESSAGES:
        return _json(messages.whole(answer))
    return _json(responses.whole(answer) if api is Api.RESPONSES else chat.whole(answer))


def named(event: dict[str, Any]) -> bytes:
    return b"event: %b\n%b" % (event["type"].encode(), unnamed(event))


def unnamed(event: dict[str, Any]) -> bytes:
    return b"data: %b\n\n" % _json(event)


def _json(value: Any) -> bytes:
    return json.dumps(value, separators=(",", ":")).encode()
