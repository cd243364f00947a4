"""Responses requests and their parts, and how a test reads what became of them."""

from __future__ import annotations

import json
from typing import Any

import pytest

from gateway.errors import BadRequest
from gateway.protocols.sse import Reader
from gateway.protocols.translate import StreamTranslation, Translation
from gateway.protocols.translate.responses import translate
from tests.protocols.translate.chat_streams import played, stream
from tests.support.grammar_responses import Payload, check, payloads

Json = dict[str, Any]


def chat(**request: Any) -> Json:
    body = json.dumps({"model": "m", **request}).encode()
    translation = translate(body, model="alias", request_id="r1", created=1)
    decoded: Json = json.loads(translation.body)
    return decoded


def messages(*items: Any, **more: Any) -> list[Json]:
    found: list[Json] = chat(input=list(items), **more)["messages"]
    return found


def refused(*items: Any, **more: Any) -> BadRequest:
    with pytest.raises(BadRequest) as caught:
        chat(input=list(items), **more)
    return caught.value


def said(role: str, *texts: str) -> Json:
    kind = "output_text" if role == "assistant" else "input_text"
    content = [{"type": kind, "text": text} for text in texts]
    return {"type": "message", "role": role, "content": content}


def call(call_id: str, arguments: Any = "{}", name: str = "shell", **more: Any) -> Json:
    item = {"type": "function_call", "call_id": call_id, "name": name, "arguments": arguments}
    return {**item, **more}


def result(call_id: str, output: Any) -> Json:
    return {"type": "function_call_output", "call_id": call_id, "output": output}


def tool_call(call_id: str, arguments: str = "{}", name: str = "shell") -> Json:
    function = {"name": name, "arguments": arguments}
    return {"id": call_id, "type": "function", "function": function}


def reasoning(text: str | None = None, *summary: str) -> Json:
    return {
        "type": "reasoning",
        "id": "rs_1",
        "summary": [{"type": "summary_text", "text": one} for one in summary],
        "content": None if text is None else [{"type": "reasoning_text", "text": text}],
        "encrypted_content": "gAAAA",
    }


SCHEMA = {"type": "object", "properties": {"a": {"type": "string"}}}
SHELL = {"type": "function", "name": "shell", "parameters": SCHEMA, "strict": False}
USER = {"role": "user", "content": "hi"}
IMAGE = "data:image/png;base64,AAAA"
PICTURE = {"type": "input_image", "image_url": IMAGE}


SPAWN = {"type": "function", "name": "spawn"}
TOOLS = [
    {"type": "function", "name": "shell"},
    {"type": "namespace", "name": "agents", "tools": [SPAWN]},
    {"type": "custom", "name": "patch"},
]


def asked(**more: Any) -> Translation:
    request = {"model": "m", "input": "hi", "tools": TOOLS, "stream": True, **more}
    return translate(json.dumps(request).encode(), model="alias", request_id="r1", created=7)


def events(*said: dict[str, Any], **more: Any) -> list[Payload]:
    """The events for a stream, which is checked against the grammar."""
    out = played(asked().stream(), [stream(*said, **more)])
    check(out)
    return payloads(out)


def kinds(found: list[Payload]) -> list[str]:
    return [one["type"].removeprefix("response.") for one in found]


def output(*said: dict[str, Any], **more: Any) -> list[Payload]:
    found: list[Payload] = events(*said, **more)[-1]["response"]["output"]
    return found


def feed(translation: StreamTranslation, data: bytes) -> list[Payload]:
    (event,) = Reader().feed(data)
    return payloads(translation.feed(event))
