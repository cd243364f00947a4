"""A conversation's fingerprint: the same from turn to turn, another for another conversation."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.protocols.fields import parse
from gateway.protocols.opening import opening
from gateway.records import Api


def of(api: Api, **fields: Any) -> bytes:
    return opening(api, parse(json.dumps({"model": "m", **fields}).encode()))


def user(content: Any) -> dict[str, Any]:
    return {"role": "user", "content": content}


SYSTEM = {"role": "system", "content": "Be brief."}
ANSWER = {"role": "assistant", "content": "Yes."}
FIRST, SECOND = user("Is it so?"), user("And now?")


def test_chat_stays_the_same_while_it_grows() -> None:
    first = of(Api.CHAT, messages=[SYSTEM, FIRST])
    assert first == b"Be brief.\0Is it so?"
    assert of(Api.CHAT, messages=[SYSTEM, FIRST, ANSWER, SECOND], temperature=1) == first
    assert of(Api.CHAT, messages=[SYSTEM, FIRST, SYSTEM, SECOND]) == first
    assert of(Api.CHAT, messages=[SYSTEM, SECOND]) != first
    assert of(Api.CHAT, messages=[{**SYSTEM, "content": "Be long."}, FIRST]) != first
    assert of(Api.CHAT, messages=[{**SYSTEM, "role": "developer"}, FIRST]) == first


def test_text_may_come_as_blocks() -> None:
    blocks = [{"type": "text", "text": "Is it"}, {"type": "text", "text": "so?"}]
    assert of(Api.CHAT, messages=[user(blocks)]) == b"Is it\0so?"


def test_a_moving_cache_mark_changes_nothing() -> None:
    mark = {"cache_control": {"type": "ephemeral"}}
    image = {"type": "image", "source": {"type": "base64", "data": "AAAA"}}
    text = {"type": "text", "text": "What is it?"}
    plain = of(Api.MESSAGES, messages=[user([image, text])])
    assert of(Api.MESSAGES, messages=[user([{**image, **mark}, {**text, **mark}])]) == plain
    assert of(Api.MESSAGES, messages=[user([{**image, "source": 1}, text])]) != plain


def test_claude_code_router_1220_a_changing_billing_line_changes_nothing() -> None:
    def turn(cch: str) -> bytes:
        billing = f"x-anthropic-billing-header: cc_version=2.1; cch={cch};"
        system = [{"type": "text", "text": billing}, {"type": "text", "text": "You are Claude."}]
        return of(Api.MESSAGES, system=system, messages=[FIRST])

    assert turn("aaaaa") == turn("bbbbb") == b"You are Claude.\0Is it so?"


def test_messages_with_system_as_a_string() -> None:
    assert of(Api.MESSAGES, system="Be brief.", messages=[FIRST, ANSWER, SECOND]) == (
        b"Be brief.\0Is it so?"
    )


def test_responses() -> None:
    items = [
        {"type": "message", "role": "developer", "content": "Be brief."},
        {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "So?"}]},
    ]
    first = of(Api.RESPONSES, input=items)
    assert first == b"Be brief.\0So?"
    call = {"type": "function_call", "name": "f", "arguments": "{}", "call_id": "1"}
    assert of(Api.RESPONSES, input=[*items, call, SECOND]) == first
    assert of(Api.RESPONSES, instructions="Be brief.", input="So?") == first
    assert of(Api.RESPONSES, instructions=None, input="So?") == b"So?"


@pytest.mark.parametrize(
    ("api", "one", "other"),
    [
        (Api.COMPLETIONS, {"prompt": "a"}, {"prompt": "b"}),
        (Api.EMBEDDINGS, {"input": ["a"]}, {"input": ["b"]}),
        (Api.OTHER, {"query": "a", "documents": ["x"]}, {"query": "a", "documents": ["y"]}),
    ],
)
def test_without_conversations_the_input_stands_for_it(
    api: Api, one: dict[str, Any], other: dict[str, Any]
) -> None:
    assert of(api, **one) == of(api, **one)
    assert of(api, **one) != of(api, **other)


json_values = st.recursive(
    st.none() | st.integers() | st.text(max_size=4),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["role", "content", "text", "type"]), inner, max_size=3)
    ),
    max_leaves=10,
)


@given(st.sampled_from(list(Api)), json_values, json_values, json_values)
def test_no_json_breaks_it(api: Api, messages: Any, system: Any, given_input: Any) -> None:
    of(api, messages=messages, system=system, input=given_input, instructions=system, prompt=1)


@given(st.lists(json_values, max_size=4), st.lists(json_values, max_size=3))
def test_what_follows_the_first_user_message_changes_nothing(
    before: list[Any], after: list[Any]
) -> None:
    if any(isinstance(one, str) for one in before):
        return
    assert of(Api.CHAT, messages=[*before, FIRST, *after]) == of(
        Api.CHAT, messages=[*before, FIRST]
    )
