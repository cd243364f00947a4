"""Requests for a native `/v1/responses`: the items of the conversation."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from openai.types.responses import ResponseInputItemParam, ResponseOutputItem
from pydantic import TypeAdapter

from gateway.protocols.fields import parse
from tests.protocols.sanitise.requests import shaped
from tests.protocols.sanitise.test_responses import AGENTS, KEYS, PATCH, WORDS, changes, done

# vLLM checks requests with the official SDK's own types.
ITEM = TypeAdapter[Any](ResponseInputItemParam | ResponseOutputItem)


def becomes(item: dict[str, Any]) -> Any:
    """What reaches the backend in an item's place, as vLLM's check lets it pass."""
    before, after = {"role": "user", "content": "a"}, {"role": "user", "content": "b"}
    made = done(input=[before, item, after], tools=[AGENTS, PATCH])["input"]
    assert made[0] == before and made[-1] == after
    for one in made[1:-1]:
        ITEM.validate_python(one)
    return made[1] if len(made) == 3 else made[1:-1]


def said(text: str) -> dict[str, Any]:
    return {"type": "message", "role": "assistant", "content": text}


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        ([], ""),
        (None, ""),
        ([{"type": "output_text", "text": "a"}], "a"),
        ([{"type": "output_text", "text": "a"}, {"type": "output_text", "text": "b"}], "ab"),
        ([{"type": "refusal", "refusal": "No."}], "No."),
    ],
)
def test_what_the_assistant_said_is_one_text(content: Any, expected: str) -> None:
    assert becomes({"type": "message", "role": "assistant", "content": content}) == said(expected)


def test_an_answer_as_an_engine_gave_it_stays_as_it_is() -> None:
    part = {"type": "output_text", "text": "a", "annotations": []}
    answer = {**said(""), "id": "msg_1", "status": "completed", "content": [part]}
    assert becomes(answer) == answer
    assert becomes({**answer, "content": [part, part]}) == said("aa")


IMAGE = {"type": "input_image", "image_url": "data:image/png;base64,iVBO"}
SEEN = {**IMAGE, "detail": "auto"}
LOW = {**IMAGE, "detail": "low"}
TEXT = {"type": "input_text", "text": "see"}


def test_images_say_how_closely_to_look() -> None:
    output = {"type": "function_call_output", "call_id": "c"}
    assert becomes({**output, "output": [TEXT, IMAGE, LOW]}) == {
        **output,
        "output": [TEXT, SEEN, LOW],
    }
    asked = {"type": "message", "role": "user"}
    assert becomes({**asked, "content": [TEXT, IMAGE]}) == {**asked, "content": [TEXT, SEEN]}


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ('{"cmd": "echo tr', '{"unparsed_arguments":"{\\"cmd\\": \\"echo tr"}'),
        ("", "{}"),
        (None, "{}"),
        ({"cmd": "ls"}, '{"cmd":"ls"}'),
        ("[1]", '{"unparsed_arguments":"[1]"}'),
        ('{"cmd" : "ls"}', '{"cmd" : "ls"}'),
    ],
)
def test_a_call_has_an_object_for_its_arguments(given: Any, expected: str) -> None:
    call = {"type": "function_call", "call_id": "c", "name": "shell"}
    assert becomes({**call, "arguments": given}) == {**call, "arguments": expected}


def test_calls_carry_the_names_of_the_functions() -> None:
    call = {"type": "function_call", "call_id": "c", "arguments": "{}"}
    assert becomes({**call, "name": "spawn", "namespace": "agents"}) == {
        **call,
        "name": "agents__spawn",
    }
    custom = {"type": "custom_tool_call", "id": "ctc_1", "call_id": "c", "name": "apply_patch"}
    assert becomes({**custom, "input": '*** "x"\n', "status": "completed"}) == {
        **call,
        "id": "ctc_1",
        "name": "apply_patch",
        "arguments": '{"input":"*** \\"x\\"\\n"}',
    }
    output = {"type": "custom_tool_call_output", "call_id": "c", "output": [IMAGE]}
    assert becomes(output) == {**output, "type": "function_call_output", "output": [SEEN]}


THOUGHT = {"type": "reasoning", "id": "rs_1", "summary": [{"type": "summary_text", "text": "hm"}]}
CONTENT = [{"type": "reasoning_text", "text": "hm"}]


@pytest.mark.parametrize(
    ("item", "expected"),
    [
        ({**THOUGHT, "encrypted_content": "gAAA"}, THOUGHT),
        (
            {"type": "reasoning", "id": "rs_1", "content": CONTENT},
            {"type": "reasoning", "id": "rs_1", "content": CONTENT, "summary": []},
        ),
        (
            {"type": "reasoning", "summary": [], "content": CONTENT},
            {"id": "rs_0", "type": "reasoning", "summary": [], "content": CONTENT},
        ),
        ({"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "gAAA"}, []),
    ],
)
def test_reasoning_is_what_can_be_read_of_it(item: Any, expected: Any) -> None:
    assert becomes(item) == expected


LS = {
    "id": "c",
    "type": "function_call",
    "call_id": "c",
    "name": "local_shell",
    "arguments": "{}",
}


@pytest.mark.parametrize(
    ("item", "expected"),
    [
        (
            {
                "type": "web_search_call",
                "id": "ws_1",
                "status": "completed",
                "action": {"type": "search", "query": "vllm"},
            },
            said("[web search: vllm]"),
        ),
        (
            {"type": "image_generation_call", "id": "ig_1", "result": "i" * 5000},
            said("[image generated]"),
        ),
        (
            {
                "type": "local_shell_call",
                "id": "ls_1",
                "call_id": "c",
                "status": "completed",
                "action": {"type": "exec", "command": ["ls"], "env": {}},
            },
            {
                "id": "ls_1",
                "type": "function_call",
                "call_id": "c",
                "name": "local_shell",
                "arguments": '{"type":"exec","command":["ls"],"env":{}}',
            },
        ),
        (
            {"type": "shell_call_output", "call_id": "c", "output": [{"stdout": "a"}]},
            {"type": "function_call_output", "call_id": "c", "output": '[{"stdout":"a"}]'},
        ),
        (
            {"type": "local_shell_call_output", "call_id": "c", "output": "a"},
            {"type": "function_call_output", "call_id": "c", "output": "a"},
        ),
        (
            {"type": "compaction", "id": "cmp_1", "encrypted_content": "gAAA"},
            {
                "type": "message",
                "role": "user",
                "content": "[Earlier parts of this conversation were left out here.]",
            },
        ),
        ({"type": "local_shell_call", "id": "c", "status": "completed"}, LS),
        ({"type": "mcp_list_tools", "id": "mcpl_1", "tools": []}, []),
    ],
)
def test_of_what_others_ran_a_call_or_a_note_stays(item: Any, expected: Any) -> None:
    assert becomes(item) == expected


@pytest.mark.parametrize("item", [{"type": "of_next_year"}, {"type": 5}, "text", {}])
def test_what_is_unknown_is_the_backends_to_judge(item: Any) -> None:
    assert changes(parse(msgspec.json.encode({"input": [item]}))) == {}


ITEMS = st.lists(
    shaped(WORDS, KEYS)
    | st.fixed_dictionaries(
        {"type": st.sampled_from(WORDS)},
        optional={
            "role": st.sampled_from(WORDS),
            "content": shaped(WORDS, KEYS),
            "output": shaped(WORDS, KEYS),
            "arguments": st.sampled_from(WORDS),
            "call_id": st.just("c"),
            "name": st.sampled_from(["spawn", "apply_patch", "x"]),
            "namespace": st.sampled_from(["agents", "y", None]),
        },
    ),
    max_size=4,
)


@given(ITEMS, ITEMS)
def test_a_turn_later_the_conversation_begins_with_the_same_bytes(
    items: list[Any], more: list[Any]
) -> None:
    hello = [{"role": "user", "content": "hi"}]
    before = _prompt([*hello, *items])
    assert _prompt([*hello, *items, *more]).startswith(before.removesuffix(b"]"))


def _prompt(items: list[Any]) -> bytes:
    fields = parse(msgspec.json.encode({"input": items, "tools": [AGENTS, PATCH]}))
    changed = changes(fields).get("input")
    return changed if changed is not None else bytes(fields["input"])
