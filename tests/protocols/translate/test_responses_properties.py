"""What holds of every Responses request: it is translated or refused, and keeps its prefix."""

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
from tests.protocols.translate.responses_support import (
    SHELL,
    TOOLS,
    USER,
    Json,
    asked,
    call,
    chat,
    reasoning,
    result,
    said,
    tool_call,
)


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
    '"input":[{{"type":"shell_call","call_id":"c","action":{}}}]',
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
FUNCTIONS = ["shell", "agents__spawn", "patch", "never_offered"]
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


@given(TEXTS, TEXTS, st.lists(st.tuples(st.sampled_from(FUNCTIONS), TEXTS), max_size=3))
def test_an_answer_that_is_sent_back_is_what_the_model_said(
    thought: str, text: str, calls: list[tuple[str, str]]
) -> None:
    said: Json = {"role": "assistant", "content": text}
    if thought:
        said["reasoning"] = thought
    if calls:
        said["tool_calls"] = [
            tool_call(f"c{n}", msgspec.json.encode({"input": one}).decode(), name)
            for n, (name, one) in enumerate(calls)
        ]
    body = json.dumps({"choices": [{"index": 0, "message": said}]}).encode()
    output = json.loads(asked().whole(body))["output"]
    assert chat(input=[USER, *output], tools=TOOLS)["messages"] == [USER, said]
