"""The four streamed APIs as a test sees them: what is asked, what comes, how it fails.

A stream here has an opening (no token), two tokens and an ending with usage of 7 prompt tokens,
4 of them cached, and 2 completion tokens.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from gateway.records import Api

USER = [{"role": "user", "content": "hi"}]


def _data(*payloads: dict[str, Any]) -> list[bytes]:
    """Frames as chat and completions write them."""
    return [b"data: " + _json(one) + b"\n\n" for one in payloads]


def _named(*payloads: dict[str, Any]) -> list[bytes]:
    """Frames as Messages and Responses write them: the type stands in the event name too."""
    return [b"event: %b\ndata: %b\n\n" % (one["type"].encode(), _json(one)) for one in payloads]


def _json(value: dict[str, Any]) -> bytes:
    return json.dumps(value, separators=(",", ":")).encode()


@dataclass(frozen=True)
class Dialect:
    """One streamed API.

    Attributes:
        path: where clients post.
        request: an unstreamed request for model `m`.
        reply: the whole answer to it.
        opening, tokens, ending: the frames of a stream.
        error: how an engine reports a failure within its stream.
        first_keepalive, keepalive: what the gateway sends before the first event and after it.
    """

    api: Api
    path: str
    request: dict[str, Any]
    reply: dict[str, Any]
    opening: list[bytes]
    tokens: list[bytes]
    ending: list[bytes]
    error: bytes
    first_keepalive: bytes
    keepalive: bytes

    @property
    def streamed(self) -> dict[str, Any]:
        """A streamed request that asks for everything, so that nothing is withheld."""
        extra = {}
        if self.api in (Api.CHAT, Api.COMPLETIONS):
            extra = {"stream_options": {"include_usage": True}}
        return {**self.request, "stream": True, **extra}

    @property
    def frames(self) -> list[bytes]:
        return self.opening + self.tokens + self.ending

    @property
    def done(self) -> list[bytes]:
        """The frame behind everything else, an error too, where the API has one."""
        return [b"data: [DONE]\n\n"] if self.api in (Api.CHAT, Api.COMPLETIONS) else []

    def failure(self, text: bytes) -> dict[str, Any]:
        """The error that a stream ended with, checked for the frames around it."""
        last = [frame for frame in text.split(b"\n\n") if frame]
        if self.api in (Api.CHAT, Api.COMPLETIONS):
            assert last.pop() == b"data: [DONE]", text
        frame = last.pop()
        payload: dict[str, Any] = json.loads(frame.partition(b"data: ")[2])
        if self.api is Api.RESPONSES:
            assert frame.startswith(b"event: response.failed\n"), text
            assert payload["type"] == "response.failed"
            assert payload["response"]["status"] == "failed"
            error: dict[str, Any] = payload["response"]["error"]
            return error
        if self.api is Api.MESSAGES:
            assert frame.startswith(b"event: error\n"), text
            assert payload["type"] == "error" and payload["request_id"].startswith("req_")
        error = payload["error"]
        return error


_CHAT = {"id": "c1", "object": "chat.completion.chunk", "created": 1, "model": "m"}
_TEXT = {"id": "c1", "object": "text_completion", "created": 1, "model": "m"}
_USAGE = {
    "prompt_tokens": 7,
    "completion_tokens": 2,
    "total_tokens": 9,
    "prompt_tokens_details": {"cached_tokens": 4},
}


def _choice(delta: dict[str, Any], finish: str | None = None) -> dict[str, Any]:
    return {**_CHAT, "choices": [{"index": 0, "delta": delta, "finish_reason": finish}]}


def _text(text: str, finish: str | None = None) -> dict[str, Any]:
    return {**_TEXT, "choices": [{"index": 0, "text": text, "finish_reason": finish}]}


CHAT = Dialect(
    api=Api.CHAT,
    path="/v1/chat/completions",
    request={"model": "m", "messages": USER},
    reply={
        **_CHAT,
        "object": "chat.completion",
        "choices": [
            {
                "index": 0,
                "message": {"role": "assistant", "content": "ab"},
                "finish_reason": "stop",
            }
        ],
        "usage": _USAGE,
    },
    opening=_data(_choice({"role": "assistant", "content": ""})),
    tokens=_data(_choice({"content": "a"}), _choice({"content": "b"})),
    ending=[
        *_data(_choice({}, "stop"), {**_CHAT, "choices": [], "usage": _USAGE}),
        b"data: [DONE]\n\n",
    ],
    error=b'data: {"error":{"message":"EngineCore at http://10.0.0.9 died","type":"'
    b'InternalServerError","param":null,"code":500}}\n\n',
    first_keepalive=b": keep-alive\n\n",
    keepalive=b": keep-alive\n\n",
)

COMPLETIONS = Dialect(
    api=Api.COMPLETIONS,
    path="/v1/completions",
    request={"model": "m", "prompt": "hi"},
    reply={
        **_TEXT,
        "choices": [{"index": 0, "text": "ab", "finish_reason": "stop", "logprobs": None}],
        "usage": _USAGE,
    },
    opening=_data(_text("")),
    tokens=_data(_text("a"), _text("b")),
    ending=[
        *_data(_text("", "stop"), {**_TEXT, "choices": [], "usage": _USAGE}),
        b"data: [DONE]\n\n",
    ],
    error=CHAT.error,
    first_keepalive=b": keep-alive\n\n",
    keepalive=b": keep-alive\n\n",
)

_MESSAGE: dict[str, Any] = {
    "id": "msg_1",
    "type": "message",
    "role": "assistant",
    "model": "m",
    "content": [],
    "stop_reason": None,
    "stop_sequence": None,
    "usage": {"input_tokens": 3, "cache_read_input_tokens": 4, "output_tokens": 0},
}


def _text_delta(text: str) -> dict[str, Any]:
    delta = {"type": "text_delta", "text": text}
    return {"type": "content_block_delta", "index": 0, "delta": delta}


MESSAGES = Dialect(
    api=Api.MESSAGES,
    path="/v1/messages",
    request={"model": "m", "max_tokens": 16, "messages": USER},
    reply={
        **_MESSAGE,
        "content": [{"type": "text", "text": "ab"}],
        "stop_reason": "end_turn",
        "usage": {"input_tokens": 3, "cache_read_input_tokens": 4, "output_tokens": 2},
    },
    opening=_named(
        {"type": "message_start", "message": _MESSAGE},
        {
            "type": "content_block_start",
            "index": 0,
            "content_block": {"type": "text", "text": ""},
        },
    ),
    tokens=_named(_text_delta("a"), _text_delta("b")),
    ending=_named(
        {"type": "content_block_stop", "index": 0},
        {
            "type": "message_delta",
            "delta": {"stop_reason": "end_turn", "stop_sequence": None},
            "usage": {"output_tokens": 2},
        },
        {"type": "message_stop"},
    ),
    error=b'event: error\ndata: {"type":"error","error":{"type":"internal_error",'
    b'"message":"EngineCore at http://10.0.0.9 died"}}\n\n',
    first_keepalive=b'event: ping\ndata: {"type": "ping"}\n\n',
    keepalive=b'event: ping\ndata: {"type": "ping"}\n\n',
)


def _response(status: str, output: list[Any], usage: Any = None) -> dict[str, Any]:
    return {
        "id": "resp_1",
        "object": "response",
        "created_at": 1,
        "status": status,
        "error": None,
        "incomplete_details": None,
        "instructions": None,
        "metadata": {},
        "model": "m",
        "output": output,
        "parallel_tool_calls": True,
        "temperature": 1.0,
        "tool_choice": "auto",
        "tools": [],
        "top_p": 1.0,
        "usage": usage,
    }


_PART = {"type": "output_text", "text": "", "annotations": []}
_ITEM = {
    "id": "msg_1",
    "type": "message",
    "role": "assistant",
    "status": "completed",
    "content": [{**_PART, "text": "ab"}],
}
_AT = {"item_id": "msg_1", "output_index": 0, "content_index": 0}
_RESPONSE_USAGE = {
    "input_tokens": 7,
    "input_tokens_details": {"cached_tokens": 4},
    "output_tokens": 2,
    "output_tokens_details": {"reasoning_tokens": 0},
    "total_tokens": 9,
}


def _delta(number: int, text: str) -> dict[str, Any]:
    return {
        "type": "response.output_text.delta",
        "sequence_number": number,
        **_AT,
        "delta": text,
        "logprobs": [],
    }


RESPONSES = Dialect(
    api=Api.RESPONSES,
    path="/v1/responses",
    request={"model": "m", "input": "hi"},
    reply=_response("completed", [_ITEM], _RESPONSE_USAGE),
    opening=_named(
        {
            "type": "response.created",
            "sequence_number": 0,
            "response": _response("in_progress", []),
        },
        {
            "type": "response.output_item.added",
            "sequence_number": 1,
            "output_index": 0,
            "item": {**_ITEM, "status": "in_progress", "content": []},
        },
        {"type": "response.content_part.added", "sequence_number": 2, **_AT, "part": _PART},
    ),
    tokens=_named(_delta(3, "a"), _delta(4, "b")),
    ending=_named(
        {
            "type": "response.output_text.done",
            "sequence_number": 5,
            **_AT,
            "text": "ab",
            "logprobs": [],
        },
        {
            "type": "response.content_part.done",
            "sequence_number": 6,
            **_AT,
            "part": {**_PART, "text": "ab"},
        },
        {
            "type": "response.output_item.done",
            "sequence_number": 7,
            "output_index": 0,
            "item": _ITEM,
        },
        {
            "type": "response.completed",
            "sequence_number": 8,
            "response": _response("completed", [_ITEM], _RESPONSE_USAGE),
        },
    ),
    error=b'event: error\ndata: {"type":"error","sequence_number":5,"code":"server_error",'
    b'"message":"EngineCore at http://10.0.0.9 died","param":null}\n\n',
    first_keepalive=b": keep-alive\n\n",
    keepalive=b'data: {"type":"ping"}\n\n',
)

DIALECTS = (CHAT, COMPLETIONS, MESSAGES, RESPONSES)
