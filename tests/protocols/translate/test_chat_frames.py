"""Chat frames and replies as the translations read them."""

from __future__ import annotations

import json
from typing import Any

import pytest

from gateway.protocols.sse import Event, Reader
from gateway.protocols.translate import chat_frames
from gateway.records import Usage


def _event(text: str) -> Event:
    (event,) = Reader().feed(text.encode())
    return event


def _frame(value: Any) -> chat_frames.Chat | None:
    return chat_frames.frame(_event(f"data: {json.dumps(value)}\n\n"))


def _delta(**fields: Any) -> chat_frames.Delta:
    found = _frame({"choices": [{"index": 0, "delta": fields}]})
    assert found is not None and found.choices and found.choices[0].delta is not None
    return found.choices[0].delta


@pytest.mark.parametrize("text", [": keep-alive\n\n", "data: [DONE]\n\n", "data:  \n\n"])
def test_what_is_no_frame_is_passed_over(text: str) -> None:
    assert chat_frames.frame(_event(text)) is None


@pytest.mark.parametrize("name", ["reasoning", "reasoning_content"])
def test_reasoning_is_read_under_either_name(name: str) -> None:
    assert _delta(**{name: "hm"}).thought == "hm"


def test_usage_is_read_in_the_gateways_form() -> None:
    found = _frame(
        {
            "choices": [],
            "usage": {
                "prompt_tokens": 7,
                "completion_tokens": 2,
                "prompt_tokens_details": {"cached_tokens": 4},
            },
        }
    )
    assert found is not None and found.counts == Usage(prompt=7, cached=4, completion=2)


def test_arguments_given_as_an_object_are_text_all_the_same() -> None:
    calls = _delta(tool_calls=[{"function": {"name": "f", "arguments": {"a": [1]}}}]).tool_calls
    assert calls and calls[0].function is not None
    assert json.loads(calls[0].function.text) == {"a": [1]}


@pytest.mark.parametrize(
    "value",
    [
        {"error": {"message": "died"}},
        {"object": "error", "message": "died"},
        {"choices": [{"delta": {"content": 7}}]},
        {"choices": [], "error": {"message": "died"}},
        [],
        "text",
    ],
)
def test_what_is_not_of_the_chat_api_is_refused(value: Any) -> None:
    with pytest.raises(ValueError):
        _frame(value)


@pytest.mark.parametrize("body", ["{", "[]", "{}", '{"choices": []}', '{"choices": [{}]}'])
def test_a_reply_without_a_message_is_refused(body: str) -> None:
    with pytest.raises(ValueError):
        chat_frames.reply(body.encode())


def test_a_reply_gives_its_first_choice() -> None:
    body = {"choices": [{"message": {"content": "a"}, "finish_reason": "stop", "stop_reason": 9}]}
    choice, chat = chat_frames.reply(json.dumps(body).encode())
    assert choice.message is not None and choice.message.content == "a"
    assert (choice.finish_reason, choice.stop_reason, chat.counts) == ("stop", 9, None)
