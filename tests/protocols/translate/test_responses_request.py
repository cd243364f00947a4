"""A Responses request's settings in chat, and that no request can do worse than be refused."""

from __future__ import annotations

import json
import sys
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gateway.errors import BadRequest
from gateway.protocols.translate.responses import translate
from tests.protocols.translate.test_responses_items import call, chat, reasoning, result, said

Json = dict[str, Any]
SCHEMA = {"type": "object", "properties": {"a": {"type": "string"}}}
SHELL = {"type": "function", "name": "shell", "parameters": SCHEMA, "strict": False}


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


# No request does worse than be refused


def attempt(body: bytes) -> None:
    try:
        translation = translate(body, model="m", request_id="r", created=1)
    except BadRequest as error:
        assert error.message
        return
    msgspec.json.decode(translation.body, type=dict[str, msgspec.Raw])
    translation.stream().close()


_FIELDS = """
    type role content text name arguments call_id output input tools tool_choice summary namespace
    action operation format schema effort reasoning instructions model stream id image_url detail
    file_data query parameters description mode status
"""
_VALUES = """
    message reasoning function_call function_call_output custom_tool_call custom_tool_call_output
    item_reference web_search_call local_shell_call shell_call_output computer_call_output mcp_call
    compaction user assistant developer system function custom namespace allowed_tools web_search
    json_schema grammar input_text output_text input_image input_file refusal summary_text auto
    required high
"""
NAMES = st.sampled_from(_FIELDS.split())
WORDS = st.sampled_from(_VALUES.split())
LEAVES = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5) | WORDS
VALUES = st.recursive(
    LEAVES,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(NAMES, inner, max_size=5),
    max_leaves=12,
)


@settings(max_examples=150)
@given(st.dictionaries(NAMES, VALUES, max_size=8))
def test_any_json_is_translated_or_refused(request: Json) -> None:
    attempt(json.dumps(request).encode())


@settings(max_examples=100)
@given(st.lists(st.dictionaries(NAMES, VALUES, max_size=6), max_size=5), VALUES, VALUES)
def test_any_items_are_translated_or_refused(items: list[Json], tools: Any, choice: Any) -> None:
    request = {"model": "m", "input": items, "tools": tools, "tool_choice": choice}
    attempt(json.dumps(request).encode())


@given(st.binary(max_size=60) | st.text(max_size=60).map(str.encode))
def test_any_bytes_are_translated_or_refused(body: bytes) -> None:
    attempt(body)


DEEP = (
    '"tool_choice":{}',
    '"metadata":{}',
    '"seed":{}',
    '"other":{}',
    '"tools":[{{"type":"function","name":"f","parameters":{}}}]',
    '"input":[{{"type":"tool_search_call","call_id":"c","arguments":{}}}]',
    '"input":[{{"type":"shell_call_output","call_id":"c","output":{}}}]',
)


@pytest.mark.parametrize("field", DEEP)
def test_deep_nesting_is_translated_or_refused(field: str) -> None:
    for depth in (50, *range(sys.getrecursionlimit() - 150, sys.getrecursionlimit()), 100_000):
        nested = '{"a":' * depth + "1" + "}" * depth
        attempt(f'{{"model":"m","input":"hi",{field.format(nested)}}}'.encode())


@pytest.mark.parametrize("number", ["1e999", "1" * 400, "-1e-999", "12345678901234567890123"])
def test_outlandish_numbers_are_translated_or_refused(number: str) -> None:
    for field in ("seed", "max_output_tokens", "tool_choice", "temperature"):
        attempt(f'{{"model":"m","input":"hi","{field}":{number}}}'.encode())
    tool = f'{{"type":"function","name":"f","parameters":{{"maximum":{number}}}}}'
    attempt(f'{{"model":"m","input":"hi","tools":[{tool}]}}'.encode())


# Turns


TEXTS = st.text(max_size=8)
IMAGE = {"type": "input_image", "image_url": "data:image/png;base64,AA"}


@st.composite
def turns(draw: st.DrawFn) -> list[list[Json]]:
    """A conversation as the items that each turn adds: what was said, and what came of it."""
    found: list[list[Json]] = [[said("developer", "sys"), said("user", "hi")]]
    for number in range(draw(st.integers(1, 5))):
        added: list[Json] = []
        if draw(st.booleans()):
            added.append(reasoning(draw(TEXTS)))
        if draw(st.booleans()):
            added.append(said("assistant", draw(TEXTS)))
        calls = [f"c{number}_{i}" for i in range(draw(st.integers(0, 3)))]
        added += [call(one, draw(TEXTS)) for one in calls]
        added += [result(one, draw(TEXTS | st.just([IMAGE]))) for one in calls]
        if not calls or draw(st.booleans()):
            role = draw(st.sampled_from(["user", "user", "developer"]))
            added.append(said(role, draw(TEXTS)))
        found.append(added)
    return found


@given(turns())
def test_a_later_turn_begins_with_exactly_the_messages_of_the_one_before(
    conversation: list[list[Json]],
) -> None:
    items: list[Json] = []
    before: list[Json] = []
    for added in conversation:
        items += added
        now = chat(input=items)["messages"]
        assert now[: len(before)] == before
        assert len(now) > len(before)
        before = now


@given(turns())
def test_the_same_request_is_the_same_bytes(conversation: list[list[Json]]) -> None:
    items = [item for added in conversation for item in added]
    body = json.dumps({"model": "m", "input": items, "tools": [SHELL]}).encode()
    first, second = (translate(body, model="m", request_id=r, created=1).body for r in "ab")
    assert first == second
