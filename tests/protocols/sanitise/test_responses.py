"""Requests for a native `/v1/responses`: the fields around the conversation."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from openai.types.responses.response import ToolChoice
from openai.types.responses.tool import Tool
from openai.types.shared import Reasoning
from pydantic import TypeAdapter

from gateway.errors import BadRequest
from gateway.protocols.fields import Fields, parse
from gateway.protocols.sanitise.parts import Changes
from gateway.protocols.sanitise.responses import repair
from gateway.protocols.splice import set_fields
from tests.protocols.sanitise.requests import JSON, after, fields, shaped

# vLLM checks requests with the official SDK's own types.
TOOLS = TypeAdapter[Any](list[Tool])
CHOICE = TypeAdapter[Any](ToolChoice)

SHELL: dict[str, Any] = {
    "type": "function",
    "name": "shell",
    "parameters": {"type": "object", "properties": {}},
    "strict": False,
}
SPAWN = {**SHELL, "name": "spawn"}
AGENTS = {"type": "namespace", "name": "agents", "description": "Sub-agents.", "tools": [SPAWN]}
PATCH = {
    "type": "custom",
    "name": "apply_patch",
    "description": "Edits files.",
    "format": {"type": "grammar", "syntax": "lark", "definition": "start: WORD"},
}
CLEAN: dict[str, Any] = {
    "model": "m",
    "input": [
        {"type": "message", "role": "system", "content": [{"type": "input_text", "text": "a"}]},
        {"role": "user", "content": "hi"},
        {
            "type": "message",
            "id": "msg_1",
            "status": "completed",
            "role": "assistant",
            "content": [{"type": "output_text", "text": "b", "annotations": []}],
        },
        {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": None},
        {"type": "function_call", "call_id": "c", "name": "shell", "arguments": '{"a": 1}'},
        {"type": "function_call_output", "call_id": "c", "output": "done"},
    ],
    "tools": [SHELL],
    "tool_choice": "auto",
    "reasoning": {"effort": "xhigh", "summary": "auto"},
    "include": ["reasoning.encrypted_content"],
    "store": False,
    "service_tier": "priority",
}


def changes(fields: Fields) -> Changes:
    return repair(fields)[0]


def done(**request: Any) -> dict[str, Any]:
    return after(changes, **request)


def test_a_request_that_vllm_takes_is_not_touched() -> None:
    assert repair(fields(**CLEAN)) == ({}, None)
    assert repair(fields(model="m", input="hi", tools=[])) == ({}, None)


def test_tools_become_functions_and_their_names_are_kept_for_the_way_back() -> None:
    body = msgspec.json.encode({**CLEAN, "tools": [SHELL, AGENTS, {"type": "web_search"}, PATCH]})
    made, names = repair(parse(body))
    assert list(made) == ["tools"]
    assert made["tools"] is not None and msgspec.json.encode(SHELL) in made["tools"]
    tools = msgspec.json.decode(made["tools"])
    assert [tool["name"] for tool in tools] == ["shell", "agents__spawn", "apply_patch"]
    assert {tool["type"] for tool in tools} == {"function"}
    assert "lark grammar:\nstart: WORD" in tools[2]["description"]
    TOOLS.validate_python(tools)
    assert names is not None
    assert names.called("agents__spawn") == ("spawn", "agents", False)
    assert names.called("apply_patch") == ("apply_patch", None, True)


def test_with_the_last_tool_goes_the_choice_among_them() -> None:
    hosted = [{"type": "web_search"}, {"type": "of_next_year"}]
    assert done(input="hi", tools=hosted, tool_choice="required") == {"input": "hi"}


def test_what_is_no_tool_is_refused_by_name_among_others_and_left_alone_by_itself() -> None:
    with pytest.raises(BadRequest, match=r"tools\[1\]"):
        repair(fields(input="hi", tools=[AGENTS, "x"]))
    assert repair(fields(input="hi", tools=["x"])) == ({}, None)


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({"type": "web_search"}, "auto"),
        ({"type": "web_search_preview"}, "auto"),
        ({"type": "of_next_year"}, "auto"),
        ({"type": "custom", "name": "apply_patch"}, {"type": "function", "name": "apply_patch"}),
        (
            {"type": "function", "name": "spawn", "namespace": "agents"},
            {"type": "function", "name": "agents__spawn"},
        ),
        ({"type": "function", "name": "shell"}, {"type": "function", "name": "shell"}),
        ("required", "required"),
        ("none", "none"),
    ],
)
def test_the_choice_is_among_functions(given: Any, expected: Any) -> None:
    made = done(input="hi", tools=[SHELL, AGENTS, PATCH], tool_choice=given)["tool_choice"]
    assert made == expected
    CHOICE.validate_python(made)


@pytest.mark.parametrize("mode", ["auto", "required"])
@pytest.mark.parametrize(
    ("tools", "allowed", "expected"),
    [
        ([SHELL, SPAWN], [{"type": "function", "name": "shell"}], ["shell"]),
        ([SHELL, SPAWN], [{"type": "mcp", "server_label": "x"}], None),
        ([SHELL, AGENTS], [{"type": "function", "name": "shell"}], ["shell"]),
        (
            [SHELL, AGENTS, PATCH],
            [
                {"type": "custom", "name": "apply_patch"},
                {"type": "function", "name": "spawn", "namespace": "agents"},
            ],
            ["agents__spawn", "apply_patch"],
        ),
    ],
)
def test_of_allowed_tools_the_others_are_left_out(
    mode: str, tools: Any, allowed: Any, expected: Any
) -> None:
    # vLLM takes such a choice for `auto` among all tools.
    choice = {"type": "allowed_tools", "mode": mode, "tools": allowed}
    made = done(input="hi", tools=tools, tool_choice=choice)
    if expected is None:
        assert made == {"input": "hi"}
    else:
        assert [tool["name"] for tool in made["tools"]] == expected
        assert made["tool_choice"] == mode
        TOOLS.validate_python(made["tools"])


def test_allowed_tools_keep_their_bytes() -> None:
    choice = {"type": "allowed_tools", "mode": "auto", "tools": [SHELL]}
    changes, names = repair(fields(input="hi", tools=[SPAWN, SHELL], tool_choice=choice))
    assert changes == {"tools": b"[%b]" % msgspec.json.encode(SHELL), "tool_choice": b'"auto"'}
    assert names is None


@pytest.mark.parametrize("tool", [{}, {"name": ["x"]}])
def test_tools_without_a_name_are_for_the_backend_to_judge(tool: Any) -> None:
    choice = {"type": "allowed_tools", "mode": "auto", "tools": [{"type": "function", "name": "x"}]}
    changes, _ = repair(fields(input="hi", tools=[tool], tool_choice=choice))
    assert changes == {}


@pytest.mark.parametrize(
    "choice",
    [
        {"type": "allowed_tools", "mode": "sometimes", "tools": [SHELL]},
        {"type": "allowed_tools", "mode": "auto", "tools": "all"},
        {"type": "allowed_tools", "mode": "auto", "tools": ["shell"]},
    ],
)
def test_a_choice_of_allowed_tools_that_is_none_is_refused(choice: Any) -> None:
    with pytest.raises(BadRequest, match="tool_choice"):
        repair(fields(input="hi", tools=[SHELL], tool_choice=choice))


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({"effort": "ultra", "summary": "none"}, {"effort": "high"}),
        ({"effort": "max", "summary": "detailed"}, {"effort": "high", "summary": "detailed"}),
        ({"effort": "minimal", "generate_summary": "none"}, {"effort": "minimal"}),
        ({"effort": None, "summary": None}, {"effort": None, "summary": None}),
    ],
)
def test_reasoning_is_asked_for_in_words_that_vllm_knows(given: Any, expected: Any) -> None:
    made = done(input="hi", reasoning=given)["reasoning"]
    assert made == expected
    TypeAdapter(Reasoning).validate_python(made)


@pytest.mark.parametrize("tier", ["fast", None, 5])
def test_a_service_tier_that_vllm_does_not_know_is_not_asked_for(tier: Any) -> None:
    assert done(input="hi", service_tier=tier) == {"input": "hi"}


def test_what_vllm_cannot_include_is_not_asked_for() -> None:
    sealed, sources = "reasoning.encrypted_content", "web_search_call.action.sources"
    assert done(input="hi", include=[sealed, sources]) == {"input": "hi", "include": [sealed]}
    assert done(input="hi", include=[sources]) == {"input": "hi"}


USER = {"type": "message", "role": "user", "content": "hi"}
RULES = {"type": "message", "role": "developer", "content": [{"type": "input_text", "text": "A."}]}
ALSO = {"type": "message", "role": "system", "content": "B."}
SHOWN = {
    "type": "message",
    "role": "developer",
    "content": [{"type": "input_image", "image_url": "x", "detail": "low"}],
}


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({"input": [RULES, ALSO, USER]}, {"input": [USER], "instructions": "A.\n\nB."}),
        (
            {"instructions": "Own.", "input": [ALSO, USER]},
            {"instructions": "Own.\n\nB.", "input": [USER]},
        ),
        ({"input": [ALSO, USER]}, {"input": [ALSO, USER]}),
        ({"input": [USER, ALSO]}, {"input": [USER, {**ALSO, "role": "user"}]}),
        ({"input": [RULES]}, {"input": [{**RULES, "role": "user"}]}),
        (
            {"input": [RULES, SHOWN, USER]},
            {"instructions": "A.", "input": [{**SHOWN, "role": "user"}, USER]},
        ),
        (
            {"previous_response_id": "resp_1", "input": [RULES, USER]},
            {"previous_response_id": "resp_1", "input": [{**RULES, "role": "user"}, USER]},
        ),
    ],
)
def test_there_is_one_system_message_and_no_developer(given: Any, expected: Any) -> None:
    assert done(**given) == expected


WORDS = [
    *("message", "user", "assistant", "developer", "input_image", "output_text", "input_text"),
    *("function_call", "function_call_output", "custom_tool_call", "custom_tool_call_output"),
    *("reasoning", "compaction", "web_search_call", "local_shell_call", "item_reference"),
    *("namespace", "custom", "function", "web_search", "ultra", "fast", "none", "{}", '{"a":1}'),
]
KEYS = [
    *("type", "role", "content", "text", "id", "call_id", "name", "namespace", "arguments"),
    *("input", "output", "summary", "encrypted_content", "action", "tools", "effort", "detail"),
]


@given(st.dictionaries(st.sampled_from(list(CLEAN)), shaped(WORDS, KEYS) | JSON, max_size=5))
def test_whatever_comes_is_repaired_left_or_refused(request: dict[str, Any]) -> None:
    body = msgspec.json.encode(request)
    try:
        made, _ = repair(parse(body))
    except BadRequest:
        return
    repaired = set_fields(body, made)
    assert made or repaired == body
    assert repair(parse(repaired)) == ({}, None), "what is repaired needs no more repair"
