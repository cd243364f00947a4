"""What the official Anthropic SDK makes of an answer, without a server."""

from __future__ import annotations

from typing import Any

import httpx2
from anthropic import Anthropic


class Sdk:
    """The SDK's client over bytes that a test gives it."""

    def __init__(self) -> None:
        self._reply = b""
        transport = httpx2.MockTransport(self._answer)
        self._client = Anthropic(
            api_key="k",
            base_url="http://test",
            max_retries=0,
            http_client=httpx2.Client(transport=transport),
        )

    def close(self) -> None:
        """Close the client."""
        self._client.close()

    def streamed(self, stream: bytes) -> dict[str, Any]:
        """The final message that the SDK gathers from a stream.

        Raises:
            APIStatusError: the stream holds an error event.
        """
        self._reply = stream
        ask: Any = [{"role": "user", "content": "hi"}]
        with self._client.messages.stream(model="m", max_tokens=9, messages=ask) as events:
            return events.get_final_message().to_dict(exclude_none=True)

    def whole(self, reply: bytes) -> dict[str, Any]:
        """An unstreamed message as the SDK reads it."""
        self._reply = reply
        ask: Any = [{"role": "user", "content": "hi"}]
        return self._client.messages.create(model="m", max_tokens=9, messages=ask).to_dict(
            exclude_none=True
        )

    def _answer(self, request: httpx2.Request) -> httpx2.Response:
        streamed = b'"stream":true' in request.read().replace(b" ", b"")
        kind = "text/event-stream" if streamed else "application/json"
        return httpx2.Response(200, headers={"content-type": kind}, content=self._reply)
