"""The conversation of a Messages request as chat messages."""

from __future__ import annotations

import json
from typing import Any

import pytest

from gateway.protocols.translate.messages import translate

Json = dict[str, Any]

PNG: Json = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "QQ"}}
PNG_PART: Json = {"type": "image_url", "image_url": {"url": "data:image/png;base64,QQ"}}
TEXT: Json = {"type": "text", "text": "see"}
TEXT_PART = TEXT


def chat(*messages: Json) -> list[Json]:
    """The chat messages for a conversation."""
    body = json.dumps({"model": "b", "max_tokens": 9, "messages": messages}).encode()
    return list(json.loads(translate(body, model="m", request_id="r").body)["messages"])


def user(*blocks: Json) -> Json:
    return {"role": "user", "content": list(blocks)}


def assistant(*blocks: Json) -> Json:
    return {"role": "assistant", "content": list(blocks)}


def result(content: Any = None, call: str = "c1", **more: Any) -> Json:
    return {"type": "tool_result", "tool_use_id": call, "content": content, **more}


def use(value: Any, call: str = "c1") -> Json:
    return {"type": "tool_use", "id": call, "name": "read", "input": value}


def said(*blocks: Json) -> Any:
    """The content of the one message for a user message of these blocks."""
    (message,) = chat(user(*blocks))
    assert message["role"] == "user"
    return message["content"]


# What users say


def test_texts_alone_are_one_text() -> None:
    assert said(TEXT, {"type": "text", "text": ""}, TEXT) == "see\n\nsee"


@pytest.mark.parametrize("content", ["", None, [], [{"type": "text", "text": ""}]])
def test_a_message_that_says_nothing_keeps_its_place(content: Any) -> None:
    assert chat({"role": "user", "content": content}) == [{"role": "user", "content": ""}]


def test_images_are_parts_in_their_place() -> None:
    link = {"type": "image", "source": {"type": "url", "url": "https://x/a.png"}}
    linked = {"type": "image_url", "image_url": {"url": "https://x/a.png"}}
    assert said(TEXT, PNG, link) == [TEXT_PART, PNG_PART, linked]


def test_documents_with_text_are_inlined() -> None:
    plain = {"type": "text", "media_type": "text/plain", "data": "body"}
    assert said({"type": "document", "source": plain, "title": "T", "context": "C"}) == (
        "<document>\nT\nC\nbody\n</document>"
    )
    inside = {"type": "content", "content": [TEXT, TEXT]}
    assert said({"type": "document", "source": inside}) == "<document>\nsee\n\nsee\n</document>"
    found = {"type": "search_result", "source": "u", "title": "T", "content": [TEXT]}
    assert said(found) == "T (u)\nsee"


@pytest.mark.parametrize(
    ("source", "kind"),
    [
        ({"type": "base64", "media_type": "application/pdf", "data": "QQ"}, "document"),
        ({"type": "url", "url": "https://x/a.pdf"}, "document"),
        ({"type": "file", "file_id": "file_1"}, "document"),
        ({"type": "file", "file_id": "file_1"}, "image"),
    ],
)
def test_what_cannot_be_read_is_noted_in_its_place(source: Json, kind: str) -> None:
    for note in (
        said({"type": kind, "source": source}),
        chat(user(result([{"type": kind, "source": source}])))[0]["content"],
    ):
        assert note.startswith(f"[{kind} ") and "left out: " in note


def test_traces_of_servers_tools_stay_legible() -> None:
    found = {"type": "web_search_result", "url": "u", "encrypted_content": "Zm9v"}
    (message,) = chat(
        assistant(
            {"type": "server_tool_use", "id": "s", "name": "web_search", "input": {"query": "q"}},
            {"type": "web_search_tool_result", "tool_use_id": "s", "content": [found]},
        )
    )
    assert message["content"] == (
        '[server_tool_use {"name": "web_search", "input": {"query": "q"}}]'
        '[web_search_tool_result {"content": [{"type": "web_search_result", "url": "u"}]}]'
    )


def test_a_number_of_any_size_in_a_trace_is_told() -> None:
    body = {"type": "server_tool_use", "id": "s", "name": "n", "input": {"q": 0}}
    huge = "9" * 5000
    request = json.dumps({"model": "m", "max_tokens": 1, "messages": [assistant(body)]})
    request = request.replace(": 0}", f": {huge}}}")
    chat_request = json.loads(translate(request.encode(), model="m", request_id="r").body)
    assert huge in chat_request["messages"][0]["content"]


# Results of tools


def test_results_come_first_then_their_images_then_the_rest() -> None:
    messages = chat(
        user(TEXT, result([TEXT, PNG], "c1"), result("b", "c2"), {"type": "text", "text": "go"})
    )
    assert messages == [
        {"role": "tool", "tool_call_id": "c1", "content": "see\n\n[image]"},
        {"role": "tool", "tool_call_id": "c2", "content": "b"},
        {
            "role": "user",
            "content": [PNG_PART, TEXT_PART, {"type": "text", "text": "go"}],
        },
    ]


def test_results_follow_their_calls_though_the_system_speaks_between() -> None:
    messages = chat(
        {"role": "user", "content": "hi"},
        assistant(use({})),
        {"role": "system", "content": "hurry"},
        user(result("a")),
    )
    assert [message["role"] for message in messages] == ["user", "assistant", "tool", "user"]


@pytest.mark.parametrize(
    ("block", "text"),
    [
        (result(None), ""),
        (result(""), ""),
        (result([]), ""),
        ({"type": "tool_result", "tool_use_id": "c1"}, ""),
        (result("no file", is_error=True), "Error: no file"),
        (result([TEXT], is_error=True), "Error: see"),
        (result("fine", is_error=False), "fine"),
        (result([{"type": "tool_reference", "tool_name": "t"}]), '[tool_reference {"tool_name"'),
    ],
)
def test_the_text_of_results(block: Json, text: str) -> None:
    (message,) = chat(user(block))
    assert message["role"] == "tool"
    assert message["content"].startswith(text) and bool(message["content"]) == bool(text)


# What the assistant said


def test_an_answer_is_put_together_as_it_was_generated() -> None:
    thinking = {"type": "thinking", "thinking": "hm", "signature": "s"}
    redacted = {"type": "redacted_thinking", "data": "x"}
    assert chat(assistant(thinking, redacted, TEXT, use({"a": 1}), use({}, "c2"), TEXT)) == [
        {
            "role": "assistant",
            "content": "seesee",
            "reasoning": "hm",
            "tool_calls": [
                {
                    "id": "c1",
                    "type": "function",
                    "function": {"name": "read", "arguments": '{"a": 1}'},
                },
                {"id": "c2", "type": "function", "function": {"name": "read", "arguments": "{}"}},
            ],
        }
    ]


def test_calls_alone_have_null_content_and_nothing_has_empty_content() -> None:
    assert chat(assistant(use({})))[0]["content"] is None
    assert chat(assistant()) == [{"role": "assistant", "content": ""}]
    assert chat({"role": "assistant", "content": None})[0]["content"] == ""


@pytest.mark.parametrize(
    ("value", "arguments"),
    [
        ({"a": [1, None, "ü"]}, {"a": [1, None, "ü"]}),
        ('{"a": 1}', {"a": 1}),
        ('{"cmd": "echo tr', {"__unparsedToolInput": {"raw": '{"cmd": "echo tr'}}),
        (
            {"__unparsedToolInput": {"raw": "echo", "len": 4}},
            {"__unparsedToolInput": {"raw": "echo", "len": 4}},
        ),
        ("", {}),
        (None, {}),
        ([1], {"__unparsedToolInput": {"raw": "[1]"}}),
        ("[1]", {"__unparsedToolInput": {"raw": "[1]"}}),
        (7, {"__unparsedToolInput": {"raw": "7"}}),
    ],
)
def test_arguments_are_always_a_json_object(value: Any, arguments: Any) -> None:
    (message,) = chat(assistant(use(value)))
    assert json.loads(message["tool_calls"][0]["function"]["arguments"]) == arguments


def test_a_call_without_input_has_no_arguments() -> None:
    (message,) = chat(assistant({"type": "tool_use", "id": "c", "name": "f"}))
    assert message["tool_calls"][0]["function"]["arguments"] == "{}"
