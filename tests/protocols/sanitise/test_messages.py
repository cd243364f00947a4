"""Requests for a native `/v1/messages`: the fields around the conversation."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.errors import BadRequest
from gateway.protocols.fields import parse
from gateway.protocols.sanitise.messages import repair
from gateway.protocols.splice import set_fields
from tests.protocols.sanitise.requests import JSON, after, fields, shaped

HI = [{"role": "user", "content": "hi"}]
OWN = {"name": "grep", "description": "d", "input_schema": {"type": "object"}}
SEARCH = {"type": "web_search_20250305", "name": "web_search", "max_uses": 5}
BASH = {"type": "bash_20250124", "name": "bash"}
BILLING = {"type": "text", "text": "x-anthropic-billing-header: cc_version=2; cch=af3;"}
RULES = {"type": "text", "text": "Rules.", "cache_control": {"type": "ephemeral"}}
CLEAN: dict[str, Any] = {
    "model": "m",
    "max_tokens": 32000,
    "system": [RULES],
    "messages": [
        {"role": "user", "content": [{"type": "text", "text": "hi"}, {"type": "image"}]},
        {
            "role": "assistant",
            "content": [
                {"type": "thinking", "thinking": "hm", "signature": "s"},
                {"type": "redacted_thinking", "data": "x"},
                {"type": "tool_use", "id": "t", "name": "grep", "input": {"a": 1.0}},
            ],
        },
        {
            "role": "user",
            "content": [
                {"type": "tool_result", "tool_use_id": "t", "content": "out", "is_error": False},
                {"type": "tool_result", "tool_use_id": "u", "content": [{"type": "text"}]},
                {"type": "tool_result", "tool_use_id": "v"},
            ],
        },
    ],
    "tools": [OWN, {**OWN, "type": "custom"}],
    "tool_choice": {"type": "tool", "name": "grep"},
    "thinking": {"type": "adaptive"},
    "output_config": {"effort": "high"},
    "stop_sequences": ["a", "b", "c", "d"],
}


def test_a_request_that_vllm_takes_is_not_touched() -> None:
    assert repair(fields(**CLEAN)) == {}


def test_server_tools_are_left_out() -> None:
    done = after(repair, messages=HI, tools=[SEARCH, OWN, BASH], tool_choice={"type": "any"})
    assert done["tools"] == [OWN]
    assert done["tool_choice"] == {"type": "any"}


def test_with_the_last_tool_goes_the_choice_among_them() -> None:
    done = after(repair, messages=HI, tools=[SEARCH], tool_choice={"type": "auto"})
    assert done == {"messages": HI}


@pytest.mark.parametrize(
    ("tools", "choice"),
    [
        ([SEARCH, OWN], {"type": "tool", "name": "web_search"}),
        ([SEARCH], {"type": "any"}),
    ],
)
def test_a_server_tool_that_must_be_called_is_refused(tools: Any, choice: Any) -> None:
    with pytest.raises(BadRequest, match="demands the server tool `web_search`") as caught:
        repair(fields(messages=HI, tools=tools, tool_choice=choice))
    assert caught.value.param == "tool_choice"


def test_a_tool_of_the_clients_without_a_schema_is_the_backends_to_refuse() -> None:
    assert repair(fields(messages=HI, tools=[{"name": "grep"}, {**OWN, "type": "custom"}])) == {}


@pytest.mark.parametrize(
    ("given", "effort"),
    [(-1, "low"), (500, "low"), (4095, "low"), (4096, "medium"), (16384, "high"), (10**9, "high")],
)
@pytest.mark.parametrize("most", [None, 16, 4096])
def test_a_thinking_budget_becomes_an_effort(most: int | None, given: int, effort: str) -> None:
    limit = {} if most is None else {"max_tokens": most}
    thinking = {"type": "enabled", "budget_tokens": given, "display": "omitted"}
    done = after(repair, messages=HI, thinking=thinking, **limit)
    assert done["thinking"] == {"type": "adaptive", "display": "omitted"}
    assert done["output_config"] == {"effort": effort}


@pytest.mark.parametrize(("own", "kept"), [("max", "max"), ("minimal", "low")])
def test_an_effort_of_the_requests_own_counts_more_than_its_budget(own: str, kept: str) -> None:
    thinking = {"type": "enabled", "budget_tokens": 8000}
    config = {"effort": own, "format": {"a": 1}}
    done = after(repair, messages=HI, thinking=thinking, output_config=config)
    assert done["output_config"] == {"effort": kept, "format": {"a": 1}}


def test_the_least_effort_that_vllm_knows_is_low() -> None:
    done = after(repair, messages=HI, output_config={"effort": "minimal", "format": {"a": 1}})
    assert done["output_config"] == {"effort": "low", "format": {"a": 1}}


@pytest.mark.parametrize(("given", "expected"), [(0, 1), (1, 1), (-1, -1), (None, None)])
def test_no_tokens_at_all_become_one(given: Any, expected: Any) -> None:
    assert after(repair, messages=HI, max_tokens=given)["max_tokens"] == expected


def test_of_many_stop_sequences_the_first_four_different_ones_stay() -> None:
    done = after(repair, messages=HI, stop_sequences=["a", "b", "a", "c", "d", "e"])
    assert done["stop_sequences"] == ["a", "b", "c", "d"]


def test_the_billing_line_does_not_reach_the_engine() -> None:
    body = msgspec.json.encode({**CLEAN, "system": [BILLING, RULES]})
    assert set_fields(body, repair(parse(body))) == msgspec.json.encode(CLEAN)
    assert after(repair, messages=HI, system=[BILLING]) == {"messages": HI}
    assert after(repair, messages=HI, system=BILLING["text"]) == {"messages": HI}


def test_what_follows_the_billing_line_stays() -> None:
    told = BILLING["text"] + "\n\nRules."
    assert after(repair, messages=HI, system=told)["system"] == "Rules."
    blocks = [{**RULES, "text": told}]
    assert after(repair, messages=HI, system=blocks)["system"] == [RULES]


SYSTEM = {"role": "system", "content": "Be short."}
DEVELOPER = {"role": "developer", "content": [BILLING, {"type": "text", "text": "Be kind."}]}


@pytest.mark.parametrize(
    ("system", "expected"),
    [
        (None, "Be short.\n\nBe kind."),
        ("Rules.", "Rules.\n\nBe short.\n\nBe kind."),
        ([BILLING], [{"type": "text", "text": "Be short.\n\nBe kind."}]),
        ([RULES], [RULES, {"type": "text", "text": "\n\nBe short.\n\nBe kind."}]),
    ],
)
def test_instructions_before_the_first_turn_join_the_system_text(
    system: Any, expected: Any
) -> None:
    done = after(repair, system=system, messages=[SYSTEM, DEVELOPER, *HI])
    assert done == {"system": expected, "messages": HI}


def test_instructions_alone_are_the_users_words() -> None:
    done = after(repair, messages=[SYSTEM])
    assert done == {"messages": [{"role": "user", "content": "Be short."}]}


FIELDS = list(CLEAN)
WORDS = [
    *("user", "assistant", "system", "developer", "text", "document", "tool_use", "tool_result"),
    *("server_tool_use", "web_search_tool_result", "search_result", "content", "base64", "enabled"),
    *("web_search_20250305", "minimal", "any", "tool", "x-anthropic-billing-header: 1"),
]
KEYS = [
    *("type", "role", "content", "text", "source", "data", "title", "input", "is_error", "name"),
    *("budget_tokens", "effort", "input_schema", "url", "error_code"),
]


@given(st.dictionaries(st.sampled_from(FIELDS), shaped(WORDS, KEYS) | JSON, max_size=5))
def test_whatever_comes_is_repaired_left_or_refused(request: dict[str, Any]) -> None:
    body = msgspec.json.encode(request)
    try:
        changes = repair(parse(body))
    except BadRequest:
        return
    repaired = set_fields(body, changes)
    assert changes or repaired == body
    assert repair(parse(repaired)) == {}, "what is repaired needs no more repair"


def test_a_body_nested_too_deeply_is_left_alone_or_refused() -> None:
    deep = b'{"messages":[{"role":"developer","content":' + b"[" * 900 + b"]" * 900 + b"}]}"
    repair(parse(deep))
