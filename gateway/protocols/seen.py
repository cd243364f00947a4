"""What one event of a stream says, whichever API it belongs to."""

from __future__ import annotations

import msgspec

from gateway.records import Usage


class Seen(msgspec.Struct, frozen=True, gc=False):
    """What the gateway needs to know of one event.

    Attributes:
        token: it carries something generated; the first such event is the first token.
        usage: token counts it states.
        error: it reports a failure, or is not what its API allows.
        terminal: it is the last event of its stream.
        finished: with it, every choice that has appeared has given its reason to stop, so a
            stream that ends here without its terminal event has lost nothing.
        usage_only: it is the frame that exists only because usage was asked for.
        response_id: the id of a stored response, where the event announces one.
    """

    token: bool = False
    usage: Usage | None = None
    error: bool = False
    terminal: bool = False
    finished: bool = False
    usage_only: bool = False
    response_id: str | None = None


# Nearly every event of a stream is one of these.
TOKEN = Seen(token=True)
NOTHING = Seen()
ERROR = Seen(error=True)
TERMINAL = Seen(terminal=True)


def not_json(data: bytes) -> Seen:
    """What event data that is no JSON object of its API means: the end, a comment, or a fault."""
    text = data.strip()
    if text.startswith(b"[DONE]"):
        return TERMINAL
    return ERROR if text else NOTHING
