"""Messages (Anthropic) spoken to a backend that knows chat completions only."""

from __future__ import annotations

from gateway.protocols.translate import StreamTranslation, Translation, messages_reply
from gateway.protocols.translate.messages_request import chat_request, read
from gateway.protocols.translate.messages_stream import MessagesFromChat


def translate(body: bytes, *, model: str, request_id: str) -> Translation:
    """Turn a Messages request into a chat request.

    Args:
        body: the request; its `model` is the backend's name already.
        model: the name the client used, which the answer carries.
        request_id: what the answer's ids are made from.

    Raises:
        BadRequest: it is no Messages request, or asks for what a chat server cannot do; the
            message and `param` name the field.
    """
    return _MessagesTranslation(chat_request(read(body)), model, request_id)


class _MessagesTranslation:
    """One Messages request; see `Translation`."""

    __slots__ = ("_model", "_request_id", "body")

    def __init__(self, body: bytes, model: str, request_id: str) -> None:
        self.body = body
        self._model = model
        self._request_id = request_id

    def whole(self, reply: bytes) -> bytes:
        return messages_reply.whole(reply, model=self._model, request_id=self._request_id)

    def stream(self) -> StreamTranslation:
        return MessagesFromChat(model=self._model, request_id=self._request_id)
