"""The official SDKs before an answer of ours, without a server; and streams of engines."""

from __future__ import annotations

import json
from typing import Any

import anthropic
import httpx2
import openai

SAYING = "Say it otherwise: use `x`."


def answering(status: int, body: bytes, kind: str) -> httpx2.Client:
    def answer(_: httpx2.Request) -> httpx2.Response:
        return httpx2.Response(status, content=body, headers={"content-type": kind})

    return httpx2.Client(transport=httpx2.MockTransport(answer))


def openai_client(body: bytes, status: int = 200, kind: str = "text/event-stream") -> openai.OpenAI:
    return openai.OpenAI(
        api_key="k",
        base_url="http://gateway/v1",
        max_retries=0,
        http_client=answering(status, body, kind),
    )


def anthropic_client(
    body: bytes, status: int = 200, kind: str = "text/event-stream"
) -> anthropic.Anthropic:
    return anthropic.Anthropic(
        api_key="k",
        base_url="http://gateway",
        max_retries=0,
        http_client=answering(status, body, kind),
    )


def ask_chat(client: openai.OpenAI) -> list[str]:
    stream = client.chat.completions.create(
        model="m", messages=[{"role": "user", "content": "x"}], stream=True
    )
    return [chunk.choices[0].delta.content or "" for chunk in stream]


def ask_completion(client: openai.OpenAI) -> list[str]:
    stream = client.completions.create(model="m", prompt="x", stream=True)
    return [chunk.choices[0].text for chunk in stream]


def ask_responses(client: openai.OpenAI) -> list[Any]:
    return list(client.responses.create(model="m", input="x", stream=True))


def ask_messages(client: anthropic.Anthropic) -> list[Any]:
    return list(
        client.messages.create(
            model="m", max_tokens=9, messages=[{"role": "user", "content": "x"}], stream=True
        )
    )


CHUNK = (
    b'data: {"id":"c","object":"chat.completion.chunk","created":1,"model":"m",'
    b'"choices":[{"index":0,"delta":{"content":"Hi"},"text":"Hi","finish_reason":null}]}\n\n'
)

START = (
    b"event: message_start\n"
    b'data: {"type":"message_start","message":{"id":"msg_1","type":"message","role":"assistant",'
    b'"content":[],"model":"m","stop_reason":null,"stop_sequence":null,'
    b'"usage":{"input_tokens":1,"output_tokens":1}}}\n\n'
)

RESPONSE = {
    "id": "resp_1",
    "object": "response",
    "created_at": 1,
    "status": "in_progress",
    "model": "m",
    "output": [],
    "parallel_tool_calls": True,
    "tool_choice": "auto",
    "tools": [],
}
ITEM = {"type": "message", "id": "msg_1", "role": "assistant", "status": "completed"}
TEXT = {"type": "output_text", "text": "Hi", "annotations": []}


def response_event(kind: str, **fields: Any) -> bytes:
    return f"event: {kind}\ndata: {json.dumps({'type': kind, **fields})}\n\n".encode()


CREATED = response_event("response.created", sequence_number=0, response=RESPONSE)
ADDED = response_event(
    "response.output_item.added",
    sequence_number=1,
    output_index=0,
    item={**ITEM, "status": "in_progress", "content": []},
)
DELTAS = response_event(
    "response.content_part.added",
    sequence_number=2,
    item_id="msg_1",
    output_index=0,
    content_index=0,
    part={**TEXT, "text": ""},
) + response_event(
    "response.output_text.delta",
    sequence_number=3,
    item_id="msg_1",
    output_index=0,
    content_index=0,
    delta="Hi",
    logprobs=[],
)
COMPLETED = response_event(
    "response.completed",
    sequence_number=4,
    response={**RESPONSE, "status": "completed", "output": [{**ITEM, "content": [TEXT]}]},
)
