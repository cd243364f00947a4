"""Messages and Responses spoken to backends that know chat completions only, sans I/O."""

from __future__ import annotations

from typing import Protocol

from gateway.errors import GatewayError
from gateway.protocols.sse import Event


class StreamTranslation(Protocol):
    """One chat stream on its way to a client of another API, event by event.

    Whatever an event generated leaves with that very event; nothing waits for the next one except
    text that arrives while a tool's arguments are still open.
    """

    def feed(self, event: Event) -> bytes:
        """The client's events for one chat event; empty where there is nothing to say.

        Raises:
            ValueError: the event is no chat frame.
        """

    def close(self) -> bytes:
        """The events that end the stream, once the chat stream is complete."""

    def fail(self, error: GatewayError, request_id: str) -> bytes:
        """The events that end a stream which cannot be completed.

        Open items stay open: clients run a tool call once it is closed, and this one is a piece.
        """

    def keep_alive(self) -> bytes:
        """A sign of life that may stand before the next event; it may open the stream."""


class Translation(Protocol):
    """One request as chat, and the way back for its answer.

    Attributes:
        body: the chat request, JSON.
    """

    body: bytes

    def whole(self, reply: bytes) -> bytes:
        """An unstreamed chat reply as the client's API has it.

        Raises:
            ValueError: it is no chat reply.
        """

    def stream(self) -> StreamTranslation:
        """For a streamed answer; once a request."""
