"""Whole answers as the streams they should have been."""

from __future__ import annotations

import json
from typing import Any

import pytest

from gateway.protocols.unstreamed import events
from gateway.records import Api
from tests.support import grammar_messages, grammar_responses

CALL = {"id": "c1", "type": "function", "function": {"name": "run", "arguments": '{"a":1}'}}
CHAT: dict[str, Any] = {
    "id": "chatcmpl-1",
    "object": "chat.completion",
    "created": 1,
    "model": "m",
    "choices": [
        {
            "index": 0,
            "message": {
                "role": "assistant",
                "content": "words",
                "reasoning": "thoughts",
                "refusal": None,
                "tool_calls": [CALL],
            },
            "finish_reason": "tool_calls",
        }
    ],
    "usage": {"prompt_tokens": 7, "completion_tokens": 2, "total_tokens": 9},
}
MESSAGE: dict[str, Any] = {
    "id": "msg_1",
    "type": "message",
    "role": "assistant",
    "model": "m",
    "content": [
        {"type": "thinking", "thinking": "thoughts", "signature": "s"},
        {"type": "text", "text": "words"},
        {"type": "tool_use", "id": "t1", "name": "run", "input": {"a": 1}},
    ],
    "stop_reason": "tool_use",
    "stop_sequence": None,
    "usage": {
        "input_tokens": 3,
        "cache_creation_input_tokens": 0,
        "cache_read_input_tokens": 4,
        "output_tokens": 2,
    },
}
RESPONSE: dict[str, Any] = {
    "id": "resp_1",
    "object": "response",
    "created_at": 1,
    "status": "completed",
    "model": "m",
    "incomplete_details": None,
    "parallel_tool_calls": True,
    "tool_choice": "auto",
    "tools": [],
    "output": [
        {
            "id": "rs_1",
            "type": "reasoning",
            "status": "completed",
            "summary": [],
            "content": [{"type": "reasoning_text", "text": "thoughts"}],
        },
        {
            "id": "msg_1",
            "type": "message",
            "role": "assistant",
            "status": "completed",
            "content": [{"type": "output_text", "text": "words", "annotations": []}],
        },
        {
            "id": "fc_1",
            "type": "function_call",
            "status": "completed",
            "call_id": "c1",
            "name": "run",
            "arguments": '{"a":1}',
        },
    ],
    "usage": {
        "input_tokens": 7,
        "input_tokens_details": {"cached_tokens": 4, "cache_write_tokens": 0},
        "output_tokens": 2,
        "output_tokens_details": {"reasoning_tokens": 0},
        "total_tokens": 9,
    },
}


def frames(stream: bytes) -> list[Any]:
    blocks = stream.decode().removesuffix("\n\n").split("\n\n")
    assert blocks.pop() == "data: [DONE]"
    return [json.loads(block.removeprefix("data: ")) for block in blocks]


def test_a_chat_answer() -> None:
    said, end, last = frames(events(Api.CHAT, json.dumps(CHAT).encode()))
    assert said["object"] == "chat.completion.chunk" and "usage" not in said
    assert said["choices"] == [
        {
            "index": 0,
            "delta": {
                "role": "assistant",
                "content": "words",
                "reasoning": "thoughts",
                "tool_calls": [{**CALL, "index": 0}],
            },
            "finish_reason": None,
        }
    ]
    assert end["choices"] == [{"index": 0, "delta": {}, "finish_reason": "tool_calls"}]
    assert (last["choices"], last["usage"]) == ([], CHAT["usage"])


def test_several_choices_of_a_completion() -> None:
    choices = [{"index": n, "text": "ab", "finish_reason": "stop"} for n in (0, 1)]
    answer = {"id": "cmpl-1", "object": "text_completion", "choices": choices}
    found = frames(events(Api.COMPLETIONS, json.dumps(answer).encode()))
    assert [one["choices"] for one in found] == [[choices[0]], [choices[1]]]


def test_a_message_keeps_the_grammar_and_says_the_same() -> None:
    found = grammar_messages.check(events(Api.MESSAGES, json.dumps(MESSAGE).encode()))
    assert found[0]["message"]["content"] == []
    deltas = [one["delta"] for one in found if one["type"] == "content_block_delta"]
    assert deltas == [
        {"type": "thinking_delta", "thinking": "thoughts"},
        {"type": "signature_delta", "signature": "s"},
        {"type": "text_delta", "text": "words"},
        {"type": "input_json_delta", "partial_json": '{"a":1}'},
    ]
    assert found[-2]["delta"] == {"stop_reason": "tool_use", "stop_sequence": None}
    assert found[-2]["usage"] == MESSAGE["usage"]


def test_a_response_keeps_the_grammar_and_ends_as_it_came() -> None:
    stream = events(Api.RESPONSES, json.dumps(RESPONSE).encode())
    assert grammar_responses.check(stream) == RESPONSE
    kinds = [one["type"] for one in grammar_responses.payloads(stream)]
    assert [kind for kind in kinds if kind.endswith(".delta")] == [
        "response.reasoning_text.delta",
        "response.output_text.delta",
        "response.function_call_arguments.delta",
    ]


@pytest.mark.parametrize(
    ("status", "last"),
    [("incomplete", "response.incomplete"), ("failed", "response.failed")],
)
def test_a_response_that_did_not_complete(status: str, last: str) -> None:
    stream = events(Api.RESPONSES, json.dumps({**RESPONSE, "status": status}).encode())
    assert grammar_responses.payloads(stream)[-1]["type"] == last


@pytest.mark.parametrize("api", Api)
@pytest.mark.parametrize(
    "body", [b"", b"<html>", b"[]", b"null", b"{}", b'{"choices":3}', b"[" * 100_000]
)
def test_what_is_no_answer(api: Api, body: bytes) -> None:
    with pytest.raises(ValueError):
        events(api, body)
