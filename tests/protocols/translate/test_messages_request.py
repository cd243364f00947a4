"""Messages requests as chat requests, rule by rule."""

from __future__ import annotations

import json
from typing import Any

import pytest

from gateway.errors import BadRequest
from gateway.protocols.translate.messages import translate

Json = dict[str, Any]

HI: Json = {"role": "user", "content": "hi"}
SCHEMA: Json = {"type": "object", "properties": {"a": {"type": "integer"}}}
TOOL: Json = {"name": "read", "description": "Reads.", "input_schema": SCHEMA}
SEARCH: Json = {"type": "web_search_20250305", "name": "web_search", "max_uses": 5}


def request(**fields: Any) -> Json:
    """The chat request for a Messages request."""
    body = {"model": "backend", "max_tokens": 9, "messages": [HI], **fields}
    return dict(json.loads(translate(json.dumps(body).encode(), model="m", request_id="r").body))


def refused(**fields: Any) -> BadRequest:
    with pytest.raises(BadRequest) as found:
        request(**fields)
    return found.value


def system(content: Any) -> list[Any]:
    return [one["content"] for one in request(system=content)["messages"] if one != HI]


def test_a_plain_request_has_nothing_but_its_own() -> None:
    assert request(metadata={"user_id": "u"}, context_management={"edits": []}) == {
        "model": "backend",
        "messages": [HI],
        "max_tokens": 9,
    }


# The system prompt


@pytest.mark.parametrize(
    ("content", "told"),
    [
        ("be brief", ["be brief"]),
        ("", []),
        (None, []),
        ([], []),
        ([{"type": "text", "text": "a"}, {"type": "text", "text": "b"}], ["a\n\nb"]),
        (
            [
                {"type": "text", "text": "x-anthropic-billing-header: cc_version=2.1; cch=0f1;"},
                {"type": "text", "text": "a", "cache_control": {"type": "ephemeral"}},
            ],
            ["a"],
        ),
        ("x-anthropic-billing-header: cch=0f1;\n\nbe brief", ["be brief"]),
    ],
)
def test_system_text_is_one_message_without_the_billing_line(content: Any, told: Any) -> None:
    assert system(content) == told


@pytest.mark.parametrize("role", ["system", "developer"])
def test_system_text_within_the_conversation_stays_in_its_place(role: str) -> None:
    late = {"role": role, "content": [{"type": "text", "text": "hurry"}]}
    answer = {"role": "assistant", "content": "yes"}
    assert request(messages=[HI, late, answer, HI])["messages"] == [
        {"role": "user", "content": "hi\n\nhurry"},
        {"role": "assistant", "content": "yes"},
        HI,
    ]


def test_system_messages_before_everything_join_the_system_prompt() -> None:
    first = {"role": "system", "content": "b"}
    assert request(system="a", messages=[first, HI])["messages"] == [
        {"role": "system", "content": "a\n\nb"},
        HI,
    ]


def test_a_system_message_that_is_all_billing_leaves_no_trace() -> None:
    billing = {"role": "system", "content": "x-anthropic-billing-header: cch=1;"}
    assert request(messages=[HI, billing])["messages"] == [HI]


# Sampling and output


def test_sampling_is_handed_on() -> None:
    found = request(temperature=0.5, top_p=0.9, top_k=40, stop_sequences=["END"])
    expected = {"temperature": 0.5, "top_p": 0.9, "top_k": 40, "stop": ["END"]}
    assert {name: found[name] for name in expected} == expected


def test_a_stream_asks_for_usage() -> None:
    found = request(stream=True)
    assert (found["stream"], found["stream_options"]) == (True, {"include_usage": True})
    assert "stream" not in request(stream=False)


@pytest.mark.parametrize(("cap", "asked"), [(0, 1), (1, 1), (32000, 32000)])
def test_a_cap_is_handed_on_and_zero_is_the_least_a_chat_server_takes(cap: int, asked: int) -> None:
    assert request(max_tokens=cap)["max_tokens"] == asked


def test_engine_fields_the_gateway_left_in_travel() -> None:
    fields = {"cache_salt": "k", "priority": -1, "chat_template_kwargs": {"a": None}}
    found = request(**fields)
    assert {name: found[name] for name in fields} == fields


@pytest.mark.parametrize("where", ["output_config", "output_format"])
def test_a_format_is_a_response_format(where: str) -> None:
    form = {"type": "json_schema", "schema": SCHEMA}
    found = request(**{where: {"format": form} if where == "output_config" else form})
    assert found["response_format"] == {
        "type": "json_schema",
        "json_schema": {"name": "answer", "schema": SCHEMA, "strict": True},
    }


@pytest.mark.parametrize(
    ("fields", "effort"),
    [
        ({}, None),
        ({"thinking": {"type": "adaptive"}}, None),
        ({"output_config": {"effort": "minimal"}}, "low"),
        ({"output_config": {"effort": "medium"}}, "medium"),
        ({"output_config": {"effort": "max"}}, "high"),
        ({"thinking": {"type": "enabled", "budget_tokens": 1024}}, "low"),
        ({"thinking": {"type": "enabled", "budget_tokens": 4096}}, "medium"),
        ({"thinking": {"type": "enabled", "budget_tokens": 32000}}, "high"),
        (
            {
                "thinking": {"type": "enabled", "budget_tokens": 1024},
                "output_config": {"effort": "high"},
            },
            "high",
        ),
    ],
)
def test_effort_and_budget_are_a_reasoning_effort(fields: Json, effort: str | None) -> None:
    assert request(**fields).get("reasoning_effort") == effort


def test_thinking_can_be_turned_off() -> None:
    found = request(thinking={"type": "disabled"}, output_config={"effort": "high"})
    assert found["chat_template_kwargs"] == {"enable_thinking": False}
    assert "reasoning_effort" not in found


# Tools


def test_tools_are_functions_and_what_anthropic_would_run_is_left_out() -> None:
    strict = {"name": "s", "input_schema": {}, "strict": True}
    assert request(tools=[TOOL, SEARCH, strict])["tools"] == [
        {
            "type": "function",
            "function": {"name": "read", "parameters": SCHEMA, "description": "Reads."},
        },
        {"type": "function", "function": {"name": "s", "parameters": {}, "strict": True}},
    ]
    assert "tools" not in request(tools=[SEARCH])


@pytest.mark.parametrize(
    ("choice", "asked"),
    [
        ({"type": "auto"}, "auto"),
        ({"type": "any"}, "required"),
        ({"type": "none"}, "none"),
        ({"type": "tool", "name": "read"}, {"type": "function", "function": {"name": "read"}}),
    ],
)
def test_tool_choices(choice: Json, asked: Any) -> None:
    found = request(tools=[TOOL], tool_choice=choice)
    assert found["tool_choice"] == asked and "parallel_tool_calls" not in found
    one = request(tools=[TOOL], tool_choice={**choice, "disable_parallel_tool_use": True})
    assert one["parallel_tool_calls"] is False


def test_a_choice_among_no_tools_is_no_choice() -> None:
    assert "tool_choice" not in request(tools=[SEARCH], tool_choice={"type": "auto"})


@pytest.mark.parametrize(
    ("choice", "tools", "param", "why"),
    [
        ({"type": "tool", "name": "web_search"}, [SEARCH], "tool_choice.name", "input_schema"),
        ({"type": "tool", "name": "x"}, [TOOL], "tool_choice.name", "no tool named 'x'"),
        ({"type": "tool"}, [TOOL], "tool_choice.name", "no tool named None"),
        ({"type": "any"}, [SEARCH], "tool_choice.type", "input_schema"),
        ({"type": "any"}, [], "tool_choice.type", "no tools"),
    ],
)
def test_a_choice_nobody_can_meet_is_refused(
    choice: Json, tools: list[Json], param: str, why: str
) -> None:
    fault = refused(tools=tools, tool_choice=choice)
    assert fault.param == param and why in fault.message


# Faults


@pytest.mark.parametrize(
    ("fields", "param"),
    [
        ({"messages": []}, "messages"),
        ({"messages": "hi"}, "messages"),
        ({"messages": [HI, {"role": "tool", "content": ""}]}, "messages[1].role"),
        ({"messages": [{"content": "a"}]}, "messages[0].role"),
        ({"messages": [{"role": "user", "content": 7}]}, "messages[0].content"),
        (
            {"messages": [HI, {"role": "user", "content": [{"type": "video"}]}]},
            "messages[1].content[0].type",
        ),
        (
            {"messages": [{"role": "user", "content": [{"type": "text"}]}]},
            "messages[0].content[0].text",
        ),
        (
            {"messages": [{"role": "user", "content": [{"type": "image", "source": {}}]}]},
            "messages[0].content[0].source.type",
        ),
        (
            {"messages": [{"role": "user", "content": [{"type": "thinking", "thinking": "x"}]}]},
            "messages[0].content[0].type",
        ),
        (
            {
                "messages": [
                    {"role": "assistant", "content": [{"type": "tool_result", "tool_use_id": "a"}]}
                ]
            },
            "messages[0].content[0].type",
        ),
        ({"max_tokens": -1}, "max_tokens"),
        ({"temperature": "hot"}, "temperature"),
        ({"tools": [{"input_schema": {}}]}, "tools[0].name"),
        ({"tool_choice": {"type": "maybe"}}, "tool_choice.type"),
        ({"output_config": {"effort": "ultra"}}, "output_config.effort"),
        ({"thinking": {"type": "deep"}}, "thinking.type"),
    ],
)
def test_a_fault_is_named_by_its_path(fields: Json, param: str) -> None:
    fault = refused(**fields)
    assert fault.param == param and fault.message.startswith(f"{param}: ")


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"{",
        b"[]",
        b"7",
        b'{"model":"\xff"}',
        b'{"model":"b","messages":[{"role":"user"}],"tools":[{"name":"f","input_schema":"\xff"}]}',
        b'{"messages":' + b"[" * 100_000,
    ],
)
def test_what_is_no_request_is_refused(body: bytes) -> None:
    with pytest.raises(BadRequest):
        translate(body, model="m", request_id="r")
