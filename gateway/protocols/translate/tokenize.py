"""`count_tokens` for a backend that has none: by its tokenizer, or else by a rule of thumb."""

from __future__ import annotations

from typing import Annotated, Any

import msgspec

from gateway.protocols.translate.messages_request import prompt_request, read

BYTES_PER_TOKEN = 4
"""Prose and code come to three to five bytes a token with the vocabularies of today."""

TOKENS_PER_IMAGE = 1600
"""What Anthropic counts for the largest image that is not scaled down."""


class _Count(msgspec.Struct, gc=False):
    count: Annotated[int, msgspec.Meta(ge=0)]


_decode = msgspec.json.Decoder(_Count).decode


def to_tokenize(body: bytes) -> bytes:
    """The body of vLLM's `POST /tokenize` for a `count_tokens` request.

    Raises:
        BadRequest: it is no Messages request; `param` names the field.
    """
    return prompt_request(read(body))


def counted(reply: bytes, body: bytes) -> bytes:
    """The reply of `/tokenize` as `count_tokens` answers.

    Other servers than vLLM have a `/tokenize` of their own, which states no count: their tokens
    are estimated.

    Args:
        body: the `count_tokens` request.
    """
    try:
        return _answer(_decode(reply).count)
    except (msgspec.DecodeError, RecursionError):
        return estimate(body)


def estimate(body: bytes) -> bytes:
    """The answer to a `count_tokens` request where no tokenizer can be asked.

    A token for every `BYTES_PER_TOKEN` bytes of the prompt's JSON (messages and tools), and
    `TOKENS_PER_IMAGE` for each image, whatever the model.

    Raises:
        BadRequest: as `to_tokenize`.
    """
    prompt = msgspec.json.decode(prompt_request(read(body)))
    images = 0
    for message in prompt["messages"]:
        if isinstance(message.get("content"), list):
            texts = [part for part in message["content"] if part["type"] == "text"]
            images += len(message["content"]) - len(texts)
            message["content"] = texts
    return _answer(images * TOKENS_PER_IMAGE + _size(prompt) // BYTES_PER_TOKEN)


def _size(prompt: dict[str, Any]) -> int:
    parts = [prompt["messages"], prompt.get("tools", [])]
    return sum(len(msgspec.json.encode(part)) for part in parts)


def _answer(tokens: int) -> bytes:
    return msgspec.json.encode({"input_tokens": tokens})
