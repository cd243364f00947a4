"""Tools flattened to functions, and calls of those functions given back as they were."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.errors import BadRequest
from gateway.protocols.translate.custom_input import InputReader, custom_input
from gateway.protocols.translate.responses_tools import Called, Names, flatten

FUNCTION: dict[str, Any] = {
    "type": "function",
    "name": "shell",
    "description": "Runs a command.",
    "parameters": {"type": "object"},
    "strict": True,
}


def namespace(name: str, *tools: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"type": "namespace", "name": name, "tools": list(tools), **more}


def custom(name: str, **more: Any) -> dict[str, Any]:
    return {"type": "custom", "name": name, **more}


def call(name: str, arguments: str = "{}") -> dict[str, Any]:
    return {"type": "function_call", "id": "fc_1", "name": name, "arguments": arguments}


def test_function_stays_the_very_same_object() -> None:
    tools, names = flatten([FUNCTION])
    assert tools[0] is FUNCTION
    item = call("shell")
    assert names.restore(item) is item


def test_tools_the_operator_would_run_are_left_out() -> None:
    hosted = ("web_search", "file_search", "mcp", "image_generation", "local_shell", "tool_search")
    tools, _ = flatten([{"type": kind} for kind in hosted] + [FUNCTION])
    assert tools == [FUNCTION]


def test_namespace_is_flattened_and_restored_by_what_was_declared() -> None:
    spawn = {**FUNCTION, "name": "spawn", "description": "Starts one."}
    tools, names = flatten(
        [namespace("agents", spawn, {**FUNCTION, "name": "a__b"}, description="Sub-agents.")]
    )
    assert [tool["name"] for tool in tools] == ["agents__spawn", "agents__a__b"]
    assert tools[0]["description"] == "Sub-agents.\n\nStarts one."
    assert tools[0]["strict"] is True
    assert spawn["description"] == "Starts one."
    assert names.restore(call("agents__spawn")) == {**call("spawn"), "namespace": "agents"}
    assert names.restore(call("agents__a__b")) == {**call("a__b"), "namespace": "agents"}
    assert names.restore(call("get__weather")) == call("get__weather")


def test_names_that_would_collide_are_told_apart() -> None:
    tools, names = flatten(
        [
            {**FUNCTION, "name": "a__b"},
            namespace("a", {**FUNCTION, "name": "b"}),
            custom("a__b"),
        ]
    )
    assert [tool["name"] for tool in tools] == ["a__b", "a__b_2", "a__b_3"]
    assert names.restore(call("a__b")) == call("a__b")
    assert names.restore(call("a__b_2")) == {**call("b"), "namespace": "a"}
    assert names.restore(call("a__b_3"))["type"] == "custom_tool_call"


def test_a_tool_declared_twice_keeps_one_name() -> None:
    tools, names = flatten([FUNCTION, FUNCTION])
    assert [tool["name"] for tool in tools] == ["shell", "shell"]
    assert names.function(Called("shell")) == "shell"


def test_history_names_tools_no_longer_offered_by_the_same_rule() -> None:
    assert Names().function(Called("spawn", "agents")) == "agents__spawn"
    assert Names().function(Called("patch", custom=True)) == "patch"


def test_custom_tool_becomes_a_function_of_one_string() -> None:
    grammar = {"type": "grammar", "syntax": "lark", "definition": "start: BEGIN"}
    tools, names = flatten([custom("patch", description="Edits files.", format=grammar)])
    (tool,) = tools
    assert (tool["type"], tool["name"]) == ("function", "patch")
    assert "Edits files." in tool["description"]
    assert tool["description"].endswith("this lark grammar:\nstart: BEGIN")
    assert tool["parameters"]["properties"]["input"]["type"] == "string"
    assert tool["parameters"]["required"] == ["input"]
    assert names.restore(call("patch", '{"input": "*** Begin\\n"}')) == {
        "type": "custom_tool_call",
        "id": "fc_1",
        "name": "patch",
        "input": "*** Begin\n",
    }


def test_custom_tool_in_a_namespace_comes_back_under_both_names() -> None:
    tools, names = flatten([namespace("fs", custom("patch", format={"type": "text"}))])
    assert tools[0]["name"] == "fs__patch"
    restored = names.restore(call("fs__patch", '{"input":"x"}'))
    assert (restored["namespace"], restored["name"], restored["input"]) == ("fs", "patch", "x")


@pytest.mark.parametrize("kind", ["message", "custom_tool_call", "reasoning", None])
def test_other_items_are_not_touched(kind: str | None) -> None:
    _, names = flatten([namespace("a", {**FUNCTION, "name": "b"})])
    item = {"type": kind, "name": "a__b"}
    assert names.restore(item) is item


@pytest.mark.parametrize(
    ("tools", "path"),
    [
        (["x"], "tools[0]"),
        ([FUNCTION, {}], "tools[1]"),
        ([{"type": "function"}], "tools[0].name"),
        ([{"type": "custom", "name": ""}], "tools[0].name"),
        ([{"type": "namespace", "name": 1, "tools": []}], "tools[0].name"),
        ([{"type": "namespace", "name": "a"}], "tools[0].tools"),
        ([namespace("a", {"type": "function"})], "tools[0].tools[0].name"),
    ],
)
def test_what_is_no_tool_is_named(tools: list[Any], path: str) -> None:
    with pytest.raises(BadRequest) as caught:
        flatten(tools)
    assert caught.value.param == path
    assert path in caught.value.message


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ('{"input":"a\\nb"}', "a\nb"),
        (' { "input" : "x" } ', "x"),
        ('{"input":"\\ud83d\\ude00"}', "😀"),
        ('{"input":"\\ud83d"}', "\ufffd"),
        ('{"input":"\\\\ud83d"}', "\\ud83d"),
        ('{"input":"C:\\dir"}', "C:\\dir"),
        ('{"input":"cut he', "cut he"),
        ('{"input":"cut\\', "cut"),
        ('{"input":"cut\\u00', "cut"),
        ('{"reason":"r","input":"x"}', "x"),
        ('{"patch":"x"}', "x"),
        ('"x"', "x"),
        ("*** Begin Patch", "*** Begin Patch"),
        ('{"input":5}', '{"input":5}'),
        ("[1]", "[1]"),
        ("{}", ""),
        ("", ""),
    ],
)
def test_input_is_read_from_whatever_the_model_wrote(arguments: str, text: str) -> None:
    assert custom_input(arguments) == text
    reader = InputReader()
    assert "".join(map(reader.feed, arguments)) + reader.close() == text


@given(st.text(), st.booleans(), st.data())
def test_any_text_survives_any_split_and_leaves_as_it_comes(
    text: str, ascii_only: bool, data: st.DataObject
) -> None:
    arguments = json.dumps({"input": text}, ensure_ascii=ascii_only)
    at = data.draw(st.integers(0, len(arguments)))
    reader = InputReader()
    first, second = reader.feed(arguments[:at]), reader.feed(arguments[at:])
    assert first + second == text.encode("utf-16", "replace").decode("utf-16")
    assert reader.close() == ""
    # Nothing but the escape that is being received is held back.
    assert len(first) >= min(len(text), at - len('{"input": "')) - 12 or "\\" in arguments


@given(st.text(alphabet='{}"\\:inputu0d8 ', max_size=40), st.data())
def test_a_split_never_changes_the_text(arguments: str, data: st.DataObject) -> None:
    at = data.draw(st.integers(0, len(arguments)))
    reader = InputReader()
    pieces = reader.feed(arguments[:at]) + reader.feed(arguments[at:]) + reader.close()
    assert pieces == custom_input(arguments)
