"""The Responses API spoken to a backend that knows chat completions only."""

from __future__ import annotations

from gateway.protocols.translate import Translation
from gateway.protocols.translate.responses_reply import Answer, whole
from gateway.protocols.translate.responses_request import read
from gateway.protocols.translate.responses_stream import ResponsesStream


def translate(body: bytes, *, model: str, request_id: str, created: int) -> Translation:
    """A Responses request as chat, and the way back.

    Args:
        body: the request; its `model` is the backend's name already.
        model: what the client calls the model, and so every answer.
        request_id: what the ids of the response and its items are made of.
        created: Unix seconds.

    Raises:
        BadRequest: the request cannot be told to a chat server; `param` says which field.
    """
    asked = read(body)
    return _Translation(asked.body, Answer(asked, model, request_id, created))


class _Translation:
    __slots__ = ("_answer", "body")

    def __init__(self, body: bytes, answer: Answer) -> None:
        self.body = body
        self._answer = answer

    def whole(self, reply: bytes) -> bytes:
        return whole(self._answer, reply)

    def stream(self) -> ResponsesStream:
        return ResponsesStream(self._answer)
