"""Tool calls as the SDKs' own accumulators see them, translated and not."""

from __future__ import annotations

import json
from typing import Any

import pytest

from gateway.records import Outcome
from tests.sdks.clients import chat_only, claude, gpt, in_thread
from tests.support.apis import CHAT, MESSAGES, RESPONSES
from tests.support.scripted import reply
from tests.support.site import Site, both, says, streams

pytestmark = pytest.mark.asyncio(loop_scope="module")

USER: Any = [{"role": "user", "content": "Weather in Oslo?"}]
NAME, ARGUMENTS = "weather", {"city": "Oslo", "days": 2}
PIECES = ['{"city": ', '"Oslo", ', '"days": 2}']
PARAMETERS: Any = {"type": "object", "properties": {"city": {"type": "string"}}}


def data(*payloads: dict[str, Any]) -> list[bytes]:
    return [b"data: " + json.dumps(one).encode() + b"\n\n" for one in payloads]


def named(*payloads: dict[str, Any]) -> list[bytes]:
    return [b"event: " + one["type"].encode() + b"\n" + data(one)[0] for one in payloads]


def chat_chunk(delta: dict[str, Any], finish: str | None = None) -> dict[str, Any]:
    choice = {"index": 0, "delta": delta, "finish_reason": finish}
    return {
        "id": "c1",
        "object": "chat.completion.chunk",
        "created": 1,
        "model": "m",
        "choices": [choice],
    }


def chat_call(**function: str) -> dict[str, Any]:
    return chat_chunk({"tool_calls": [{"index": 0, "function": function}]})


CHAT_TOOL = [
    *data(
        chat_chunk({"role": "assistant", "content": None}),
        chat_chunk(
            {
                "tool_calls": [
                    {
                        "index": 0,
                        "id": "call_1",
                        "type": "function",
                        "function": {"name": NAME, "arguments": ""},
                    }
                ]
            }
        ),
        *(chat_call(arguments=piece) for piece in PIECES),
        chat_chunk({}, "tool_calls"),
    ),
    *CHAT.ending[1:],
]
CHAT_TOOL_WHOLE = {
    **CHAT.reply,
    "choices": [
        {
            "index": 0,
            "finish_reason": "tool_calls",
            "message": {
                "role": "assistant",
                "content": None,
                "tool_calls": [
                    {
                        "id": "call_1",
                        "type": "function",
                        "function": {"name": NAME, "arguments": "".join(PIECES)},
                    }
                ],
            },
        }
    ],
}

MESSAGES_TOOL = [
    MESSAGES.opening[0],
    *named(
        {
            "type": "content_block_start",
            "index": 0,
            "content_block": {"type": "tool_use", "id": "toolu_1", "name": NAME, "input": {}},
        },
        *(
            {
                "type": "content_block_delta",
                "index": 0,
                "delta": {"type": "input_json_delta", "partial_json": piece},
            }
            for piece in PIECES
        ),
        {"type": "content_block_stop", "index": 0},
        {
            "type": "message_delta",
            "delta": {"stop_reason": "tool_use", "stop_sequence": None},
            "usage": {"output_tokens": 9},
        },
        {"type": "message_stop"},
    ),
]
MESSAGES_TOOL_WHOLE = {
    **MESSAGES.reply,
    "content": [{"type": "tool_use", "id": "toolu_1", "name": NAME, "input": ARGUMENTS}],
    "stop_reason": "tool_use",
}

_CALL = {
    "id": "fc_1",
    "type": "function_call",
    "call_id": "call_1",
    "name": NAME,
    "arguments": "".join(PIECES),
    "status": "completed",
}
_AT = {"item_id": "fc_1", "output_index": 0}
RESPONSES_TOOL_WHOLE = {**RESPONSES.reply, "output": [_CALL]}
RESPONSES_TOOL = [
    RESPONSES.opening[0],
    *named(
        {
            "type": "response.output_item.added",
            "sequence_number": 1,
            "output_index": 0,
            "item": {**_CALL, "arguments": "", "status": "in_progress"},
        },
        *(
            {
                "type": "response.function_call_arguments.delta",
                "sequence_number": 2 + n,
                **_AT,
                "delta": piece,
            }
            for n, piece in enumerate(PIECES)
        ),
        {
            "type": "response.function_call_arguments.done",
            "sequence_number": 5,
            **_AT,
            "name": NAME,
            "arguments": "".join(PIECES),
        },
        {
            "type": "response.output_item.done",
            "sequence_number": 6,
            "output_index": 0,
            "item": _CALL,
        },
        {"type": "response.completed", "sequence_number": 7, "response": RESPONSES_TOOL_WHOLE},
    ),
]


def chat_tool(at: Site, stream: bool) -> tuple[str, Any, str]:
    tools: Any = [{"type": "function", "function": {"name": NAME, "parameters": PARAMETERS}}]
    with gpt(at) as client:
        if stream:
            with client.chat.completions.stream(model="m", messages=USER, tools=tools) as events:
                completion: Any = events.get_final_completion()
        else:
            completion = client.chat.completions.create(model="m", messages=USER, tools=tools)
    (choice,) = completion.choices
    (call,) = choice.message.tool_calls
    return call.function.name, json.loads(call.function.arguments), choice.finish_reason


def messages_tool(at: Site, stream: bool) -> tuple[str, Any, str]:
    tools: Any = [{"name": NAME, "input_schema": PARAMETERS}]
    asked: Any = {"model": "m", "messages": USER, "tools": tools, "max_tokens": 99}
    with claude(at) as client:
        if stream:
            with client.messages.stream(**asked) as events:
                message: Any = events.get_final_message()
        else:
            message = client.messages.create(**asked)
    (block,) = message.content
    return block.name, block.input, message.stop_reason


def responses_tool(at: Site, stream: bool) -> tuple[str, Any, str]:
    tools: Any = [{"type": "function", "name": NAME, "parameters": PARAMETERS, "strict": False}]
    with gpt(at) as client:
        if stream:
            with client.responses.stream(model="m", input="hi", tools=tools) as events:
                response: Any = events.get_final_response()
        else:
            response = client.responses.create(model="m", input="hi", tools=tools)
    (item,) = response.output
    return item.name, json.loads(item.arguments), response.status


TOOLS = {
    "chat": (chat_tool, CHAT_TOOL, CHAT_TOOL_WHOLE, "tool_calls"),
    "messages": (messages_tool, MESSAGES_TOOL, MESSAGES_TOOL_WHOLE, "tool_use"),
    "responses": (responses_tool, RESPONSES_TOOL, RESPONSES_TOOL_WHOLE, "completed"),
    "messages as chat": (messages_tool, CHAT_TOOL, CHAT_TOOL_WHOLE, "tool_use"),
    "responses as chat": (responses_tool, CHAT_TOOL, CHAT_TOOL_WHOLE, "completed"),
}


@both
@pytest.mark.parametrize("api", TOOLS)
async def test_a_tool_call(at: Site, api: str, stream: bool) -> None:
    """Its name is generated, so it counts as the first token."""
    use, frames, whole, end = TOOLS[api]
    if api.endswith("as chat"):
        chat_only(at)
    at.play(streams(*frames, pause=0.1) if stream else says(reply(json.dumps(whole).encode())))
    assert await in_thread(use, at, stream) == (NAME, ARGUMENTS, end)
    record = await at.record()
    assert record.outcome is Outcome.OK
    asked = json.loads(at.backends[0].requests[0].body)
    assert NAME in json.dumps(asked["tools"])
    if stream:
        line = record.timeline
        assert line.first_byte and line.first_token and line.last_token
        assert line.first_token - line.first_byte > 0.03 and line.last_token > line.first_token
        assert len(record.gaps) == len(PIECES), "the name is the first token"
