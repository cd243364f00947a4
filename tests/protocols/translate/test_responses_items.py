"""What each item of a Responses conversation becomes in chat."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.protocols.translate.responses_support import (
    IMAGE,
    PICTURE,
    USER,
    call,
    chat,
    messages,
    reasoning,
    refused,
    result,
    said,
    tool_call,
)

# Who speaks


def test_string_input_is_what_the_user_says() -> None:
    assert chat(input="hi")["messages"] == [USER]


def test_instructions_and_leading_system_items_become_one_system_message() -> None:
    items = [said("developer", "b", "c"), said("system", "d"), said("user", "hi")]
    assert messages(*items, instructions="a") == [
        {"role": "system", "content": "a\n\nb\nc\n\nd"},
        USER,
    ]


def test_system_text_after_the_beginning_stays_in_place_as_the_users() -> None:
    items = [said("developer", "a"), said("user", "hi"), said("developer", "b")]
    assert messages(*items) == [
        {"role": "system", "content": "a"},
        USER,
        {"role": "user", "content": "b"},
    ]


def test_messages_may_leave_their_type_out_and_hold_a_string() -> None:
    assert messages({"role": "user", "content": "hi"}, {"role": "assistant", "content": "yo"}) == [
        USER,
        {"role": "assistant", "content": "yo"},
    ]


def test_what_the_assistant_did_in_a_row_is_one_message() -> None:
    items = [
        said("user", "hi"),
        reasoning("thinking"),
        said("assistant", "I will ", "look."),
        call("c1", '{"cmd":"ls"}'),
        reasoning("more"),
        call("c2"),
        result("c1", "a.py"),
        result("c2", "b.py"),
        said("assistant", "Done."),
    ]
    assert messages(*items) == [
        USER,
        {
            "role": "assistant",
            "content": "I will look.",
            "reasoning": "thinking\nmore",
            "tool_calls": [tool_call("c1", '{"cmd":"ls"}'), tool_call("c2")],
        },
        {"role": "tool", "tool_call_id": "c1", "content": "a.py"},
        {"role": "tool", "tool_call_id": "c2", "content": "b.py"},
        {"role": "assistant", "content": "Done."},
    ]


def test_an_empty_assistant_message_is_no_fault() -> None:
    empty = {"type": "message", "role": "assistant", "content": []}
    assert messages(USER, empty, USER) == [USER, {"role": "assistant", "content": ""}, USER]


# Reasoning


def test_reasoning_text_wins_over_its_summary() -> None:
    items = [USER, reasoning("whole", "short"), said("assistant", "a")]
    assert messages(*items)[1]["reasoning"] == "whole"
    assert messages(USER, reasoning(None, "s1", "s2"))[1]["reasoning"] == "s1\ns2"


def test_reasoning_that_is_only_encrypted_leaves_nothing() -> None:
    assert messages(USER, reasoning(), USER) == [USER, USER]
    assert messages(USER, {"type": "reasoning", "id": "rs_1"}, USER) == [USER, USER]


# Tool calls and their results


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ('{"cmd": "ls"}', '{"cmd": "ls"}'),
        ("", "{}"),
        ('{"cmd": "echo tr', '{"unparsed_arguments":"{\\"cmd\\": \\"echo tr"}'),
        ("[1]", '{"unparsed_arguments":"[1]"}'),
        ("null", '{"unparsed_arguments":"null"}'),
        ("{'a': 1}", '{"unparsed_arguments":"{\'a\': 1}"}'),
    ],
)
def test_arguments_reach_the_backend_as_a_json_object(arguments: str, told: str) -> None:
    (_, message) = messages(USER, call("c1", arguments))
    assert message["tool_calls"] == [tool_call("c1", told)]
    assert isinstance(json.loads(message["tool_calls"][0]["function"]["arguments"]), dict)


def test_custom_calls_and_results_are_those_of_a_function() -> None:
    items = [
        {"type": "custom_tool_call", "call_id": "c1", "name": "patch", "input": 'a "b"\n'},
        {"type": "custom_tool_call_output", "call_id": "c1", "output": "ok"},
    ]
    assert messages(*items) == [
        {
            "role": "assistant",
            "content": "",
            "tool_calls": [tool_call("c1", '{"input":"a \\"b\\"\\n"}', "patch")],
        },
        {"role": "tool", "tool_call_id": "c1", "content": "ok"},
    ]


def test_calls_are_told_under_the_names_that_are_offered() -> None:
    one = {"type": "function", "name": "b"}
    tools = [{**one, "name": "a__b"}, {"type": "namespace", "name": "a", "tools": [one]}]
    items = [call("c1", name="a__b"), call("c2", name="b", namespace="a")]
    (message,) = messages(*items, tools=tools)
    assert [one["function"]["name"] for one in message["tool_calls"]] == ["a__b", "a__b_2"]


def test_images_in_results_follow_behind_all_results() -> None:
    parts = [{"type": "input_text", "text": "seen"}, PICTURE]
    items = [call("c1"), call("c2"), result("c1", parts), result("c2", "b"), said("user", "hi")]
    assert messages(*items)[1:] == [
        {
            "role": "tool",
            "tool_call_id": "c1",
            "content": "seen\n(the output of tool call c1 goes on below)",
        },
        {"role": "tool", "tool_call_id": "c2", "content": "b"},
        {
            "role": "user",
            "content": [
                {"type": "text", "text": "Output of tool call c1:"},
                {"type": "image_url", "image_url": {"url": IMAGE}},
            ],
        },
        USER,
    ]


def test_what_the_user_says_between_a_call_and_its_result_comes_behind_the_result() -> None:
    """Templates and other servers want results directly behind their calls."""
    items = [call("c1"), call("c2"), said("user", "hi"), result("c1", "a"), result("c2", "b")]
    assert [one["role"] for one in messages(*items)] == ["assistant", "tool", "tool", "user"]


def test_a_result_that_never_comes_holds_nothing_back() -> None:
    items = [call("c1"), said("user", "hi"), said("assistant", "yo"), said("user", "bye")]
    roles = [one["role"] for one in messages(*items)]
    assert roles == ["assistant", "user", "assistant", "user"]


# What is refused


@pytest.mark.parametrize(
    ("item", "param"),
    [
        ({"type": "item_reference", "id": "msg_1"}, "input[0]"),
        ({"id": "msg_1"}, "input[0]"),
        ({"type": "hologram"}, "input[0].type"),
        ({}, "input[0].type"),
        ({"role": "critic", "content": "x"}, "input[0].role"),
        ({"type": "message", "content": "x"}, "input[0].role"),
        ({"role": "user", "content": 5}, "input[0].content"),
        ({"role": "user", "content": ["x"]}, "input[0].content[0]"),
        (
            {"role": "system", "content": [{"type": "input_image", "image_url": "x"}]},
            "input[0].content",
        ),
        ("x", "input[0]"),
        ({"type": "function_call", "name": "f", "arguments": "{}"}, "input[0].call_id"),
        ({"type": "function_call", "call_id": "c", "arguments": "{}"}, "input[0].name"),
        (call("c", arguments={"a": 1}), "input[0].arguments"),
        (result("", "x"), "input[0].call_id"),
        (result("c", 5), "input[0].output"),
        (result("c", [5]), "input[0].output[0]"),
        (result("c", [{"type": "input_file", "file_id": "x"}]), "input[0].output[0]"),
    ],
)
def test_items_that_cannot_be_told_are_refused_by_their_path(item: Any, param: str) -> None:
    error = refused(item)
    assert error.param == param
    assert param in error.message


def test_a_reference_is_answered_with_what_to_send_instead() -> None:
    assert "whole conversation" in refused({"type": "item_reference", "id": "x"}).message
