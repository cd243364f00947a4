"""How each API asks for a streamed answer, and where its events carry the answer's text."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import msgspec

from gateway.bench.load.client import Exchange
from gateway.protocols.sse import Reader
from gateway.records import Api

PATHS = {
    Api.CHAT: "/v1/chat/completions",
    Api.COMPLETIONS: "/v1/completions",
    Api.MESSAGES: "/v1/messages",
    Api.RESPONSES: "/v1/responses",
}

Body = dict[str, Any]
_encode = msgspec.json.encode


class Speech:
    """Writes the requests of one API.

    Args:
        extra: top-level fields added to every request, or put in place of one.
    """

    def __init__(self, api: Api, model: str, extra: Mapping[str, Any]) -> None:
        self.api = api
        self._model = model
        self._extra = extra

    def request(self, system: str, turns: Sequence[str], output_tokens: int) -> bytes:
        """The body of a request.

        Args:
            system: the system prompt; empty for none.
            turns: what was said so far, user and assistant in turn, a user's last.
        """
        body = _FORMS[self.api](system, turns, output_tokens)
        return _encode({"model": self._model, "stream": True, **body, **self._extra})

    def answer(self, exchange: Exchange) -> str:
        """The text that a reply brought."""
        reader = Reader()
        text = _TEXTS[self.api]
        found: list[str] = []
        for _, data in exchange.reads:
            for event in reader.feed(data):
                try:
                    said = text(msgspec.json.decode(event.data))
                except _NO_TEXT:
                    continue  # a comment, an announcement, the end
                if isinstance(said, str):
                    found.append(said)
        return "".join(found)


def _messages(turns: Sequence[str]) -> list[Body]:
    roles = ("user", "assistant")
    return [{"role": roles[n % 2], "content": text} for n, text in enumerate(turns)]


def _chat(system: str, turns: Sequence[str], output_tokens: int) -> Body:
    head = [{"role": "system", "content": system}] if system else []
    return {
        "messages": [*head, *_messages(turns)],
        "max_tokens": output_tokens,
        "temperature": 0,
        "stream_options": {"include_usage": True},
    }


def _completions(system: str, turns: Sequence[str], output_tokens: int) -> Body:
    return {
        "prompt": "\n\n".join([system, *turns] if system else turns),
        "max_tokens": output_tokens,
        "temperature": 0,
        "stream_options": {"include_usage": True},
    }


def _anthropic(system: str, turns: Sequence[str], output_tokens: int) -> Body:
    head = {"system": system} if system else {}
    return {**head, "messages": _messages(turns), "max_tokens": output_tokens, "temperature": 0}


def _responses(system: str, turns: Sequence[str], output_tokens: int) -> Body:
    head = {"instructions": system} if system else {}
    return {
        **head,
        "input": _messages(turns),
        "max_output_tokens": output_tokens,
        "temperature": 0,
        "store": False,
    }


_FORMS: dict[Api, Callable[[str, Sequence[str], int], Body]] = {
    Api.CHAT: _chat,
    Api.COMPLETIONS: _completions,
    Api.MESSAGES: _anthropic,
    Api.RESPONSES: _responses,
}

_TEXTS: dict[Api, Callable[[Any], Any]] = {
    Api.CHAT: lambda event: event["choices"][0]["delta"]["content"],
    Api.COMPLETIONS: lambda event: event["choices"][0]["text"],
    Api.MESSAGES: lambda event: event["delta"]["text"],
    Api.RESPONSES: lambda event: (
        event["delta"] if event["type"] == "response.output_text.delta" else None
    ),
}

_NO_TEXT = (msgspec.DecodeError, RecursionError, LookupError, TypeError, AttributeError)
