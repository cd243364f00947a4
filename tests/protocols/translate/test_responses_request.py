"""A Responses request's settings in chat."""

from __future__ import annotations

from typing import Any

import pytest

from gateway.errors import BadRequest
from tests.protocols.translate.responses_support import (
    SCHEMA,
    SHELL,
    Json,
    chat,
)


def asked(**settings: Any) -> Json:
    """What a request says beside the model and the conversation."""
    found = chat(input="hi", **settings)
    assert found.pop("model") == "m"
    assert found.pop("messages") == [{"role": "user", "content": "hi"}]
    return found


def refused(**settings: Any) -> BadRequest:
    with pytest.raises(BadRequest) as caught:
        chat(**{"input": "hi", **settings})
    return caught.value


def test_what_codex_sends_becomes_what_chat_takes() -> None:
    found = asked(
        stream=True,
        store=False,
        include=["reasoning.encrypted_content"],
        prompt_cache_key="k",
        client_metadata={"a": "b"},
        metadata={"a": "b"},
        service_tier="fast",
        reasoning={"effort": "medium", "summary": "auto"},
        text={"verbosity": "low"},
        tool_choice="auto",
        parallel_tool_calls=False,
        tools=[{"type": "web_search"}, SHELL],
        max_output_tokens=100,
        temperature=0.5,
        top_p=1,
    )
    assert found == {
        "stream": True,
        "stream_options": {"include_usage": True},
        "reasoning_effort": "medium",
        "tool_choice": "auto",
        "parallel_tool_calls": False,
        "tools": [
            {
                "type": "function",
                "function": {"name": "shell", "parameters": SCHEMA, "strict": False},
            }
        ],
        "max_tokens": 100,
        "temperature": 0.5,
        "top_p": 1,
    }


def test_a_request_that_is_not_streamed_asks_for_no_stream() -> None:
    assert asked(stream=False) == {}


def test_the_engines_own_fields_travel_as_they_came() -> None:
    own = {
        "top_k": 5,
        "seed": 1,
        "stop": ["x"],
        "chat_template_kwargs": {"a": 1},
        "cache_salt": "s",
    }
    assert asked(**own, min_p=None) == own


def test_tools_are_described_by_what_there_is() -> None:
    tools = asked(tools=[{"type": "function", "name": "f", "parameters": None, "description": "d"}])
    empty = {"type": "object", "properties": {}}
    assert tools == {
        "tools": [
            {"type": "function", "function": {"name": "f", "description": "d", "parameters": empty}}
        ]
    }


@pytest.mark.parametrize(
    ("choice", "told"),
    [
        ("none", "none"),
        ("required", "required"),
        (None, None),
        ({"type": "web_search"}, "auto"),
        ({"type": "function", "name": "shell"}, "shell"),
        ({"type": "function", "name": "spawn", "namespace": "agents"}, "agents__spawn"),
        ({"type": "custom", "name": "patch"}, "patch"),
    ],
)
def test_tool_choice(choice: Any, told: str | None) -> None:
    spawn = {"type": "function", "name": "spawn"}
    agents = {"type": "namespace", "name": "agents", "tools": [spawn]}
    tools = [SHELL, agents, {"type": "custom", "name": "patch"}]
    found = asked(tools=tools, tool_choice=choice)
    named = told in ("shell", "agents__spawn", "patch")
    expected = {"type": "function", "function": {"name": told}} if named else told
    assert found.get("tool_choice") == expected
    assert len(found["tools"]) == 3


def test_a_choice_among_allowed_tools_offers_only_those() -> None:
    allowed = [{"type": "function", "name": "shell"}, {"type": "web_search"}]
    choice = {"type": "allowed_tools", "mode": "required", "tools": allowed}
    found = asked(tools=[SHELL, {**SHELL, "name": "other"}], tool_choice=choice)
    assert [tool["function"]["name"] for tool in found["tools"]] == ["shell"]
    assert found["tool_choice"] == "required"


def test_without_tools_nothing_is_said_of_choosing_among_them() -> None:
    """vLLM refuses a choice among no tools."""
    assert asked(tools=[{"type": "web_search"}], tool_choice="auto", parallel_tool_calls=True) == {}


def test_structured_output() -> None:
    form = {"type": "json_schema", "name": "n", "schema": SCHEMA, "strict": True}
    assert asked(text={"format": form}) == {
        "response_format": {
            "type": "json_schema",
            "json_schema": {"name": "n", "schema": SCHEMA, "strict": True},
        }
    }
    assert asked(text={"format": {"type": "json_object"}}) == {
        "response_format": {"type": "json_object"}
    }
    assert asked(text={"format": {"type": "text"}}) == {}


@pytest.mark.parametrize(
    ("effort", "told"),
    [
        ("none", "low"),
        ("minimal", "low"),
        ("low", "low"),
        ("medium", "medium"),
        ("high", "high"),
        ("xhigh", "high"),
        ("max", "high"),
        ("ultra", "high"),
    ],
)
def test_effort_is_one_that_every_engine_takes(effort: str, told: str) -> None:
    assert asked(reasoning={"effort": effort}) == {"reasoning_effort": told}


@pytest.mark.parametrize(
    ("field", "value", "param"),
    [
        ("previous_response_id", "resp_1", "previous_response_id"),
        ("conversation", {"id": "conv_1"}, "conversation"),
        ("background", True, "background"),
        ("prompt", {"id": "p"}, "prompt"),
        ("input", None, "input"),
        ("input", [], "input"),
        ("input", 5, "input"),
        ("instructions", 5, "instructions"),
        ("max_output_tokens", 0, "max_output_tokens"),
        ("max_output_tokens", "5", "max_output_tokens"),
        ("stream", "yes", "stream"),
        ("reasoning", {"effort": "enormous"}, "reasoning.effort"),
        ("reasoning", {"effort": 5}, "reasoning.effort"),
        ("text", {"format": {"type": "grammar"}}, "text.format.type"),
        ("text", {"format": {"type": "json_schema", "name": "n"}}, "text.format.schema"),
        ("tools", [5], "tools[0]"),
        ("tools", {}, "tools"),
        ("tool_choice", "always", "tool_choice"),
        ("tool_choice", {"type": "function"}, "tool_choice.name"),
        ("tool_choice", {"type": "function", "name": "gone"}, "tool_choice.name"),
        ("tool_choice", {"type": "allowed_tools"}, "tool_choice.tools"),
        ("tool_choice", {"type": "allowed_tools", "mode": "none"}, "tool_choice.mode"),
        ("tool_choice", {"type": "allowed_tools", "tools": [5]}, "tool_choice.tools[0].name"),
    ],
)
def test_a_fault_is_told_by_its_path(field: str, value: Any, param: str) -> None:
    error = refused(**{field: value})
    assert error.param == param
    assert param in error.message


def test_a_conversation_that_is_elsewhere_has_to_be_sent() -> None:
    for field in ("previous_response_id", "conversation"):
        assert "whole conversation" in refused(**{field: "x"}).message
