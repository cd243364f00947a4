"""Whole chat replies as Messages replies."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from gateway.protocols.translate.messages import translate
from tests.support.anthropic_sdk import Sdk
from tests.support.chat_answers import Answer

_TRANSLATION = translate(
    b'{"model": "backend", "messages": [{"role": "user", "content": "hi"}]}',
    model="m",
    request_id="r1",
)


@pytest.fixture(scope="module")
def sdk() -> Iterator[Sdk]:
    one = Sdk()
    yield one
    one.close()


def whole(answer: Answer) -> dict[str, Any]:
    return dict(json.loads(_TRANSLATION.whole(answer.whole())))


def test_a_reply_is_a_message(sdk: Sdk) -> None:
    answer = Answer(
        thoughts=["hm"],
        texts=["a", "b"],
        calls=[("read", ['{"a":', "1}"]), ("write", [])],
        finish="tool_calls",
    )
    message = whole(answer)
    assert message == {
        "id": "msg_r1",
        "type": "message",
        "role": "assistant",
        "model": "m",
        "content": [
            {"type": "thinking", "thinking": "hm", "signature": "sig_r1"},
            {"type": "text", "text": "ab"},
            {"type": "tool_use", "id": "call_0", "name": "read", "input": {"a": 1}},
            {"type": "tool_use", "id": "call_1", "name": "write", "input": {}},
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
    assert sdk.whole(_TRANSLATION.whole(answer.whole()))["content"] == message["content"]


@pytest.mark.parametrize("text", ["{", '{"cmd": "echo tr', "[1]", '"a"', "null", '{"a": "\\x"}'])
def test_arguments_that_are_no_object_are_told_as_such(text: str) -> None:
    (block,) = whole(Answer(calls=[("read", [text])]))["content"]
    assert block["input"] == {"__unparsedToolInput": {"raw": text}}


def test_an_empty_answer_has_a_block_to_look_at() -> None:
    assert whole(Answer())["content"] == [{"type": "text", "text": ""}]


def test_usage_that_is_not_told_is_none() -> None:
    reply = (
        b'{"choices": [{"message": {"content": "a", "refusal": "no"}, "finish_reason": "stop"}]}'
    )
    message = json.loads(_TRANSLATION.whole(reply))
    assert set(message["usage"].values()) == {0}
    assert [block["text"] for block in message["content"]] == ["a", "no"]
    assert message["stop_reason"] == "refusal"


@pytest.mark.parametrize("reply", [b"", b"{}", b'{"error": {"message": "x"}}', b'{"choices": []}'])
def test_what_is_no_reply_is_refused(reply: bytes) -> None:
    with pytest.raises(ValueError):
        _TRANSLATION.whole(reply)
