"""Requests for a native `/v1/messages`: the turns of the conversation."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.protocols.fields import parse
from gateway.protocols.sanitise.messages import repair
from tests.protocols.sanitise.requests import after, shaped
from tests.protocols.sanitise.test_messages import BILLING, HI, KEYS, WORDS


def text(value: str) -> dict[str, str]:
    return {"type": "text", "text": value}


def content(block: dict[str, Any], role: str = "user") -> Any:
    """What becomes of a message that holds `block` between two texts."""
    sent = [*HI, {"role": role, "content": [text("before"), block, text("after")]}]
    first, *middle, last = after(repair, messages=sent)["messages"][1]["content"]
    assert (first, last) == (text("before"), text("after"))
    (one,) = middle
    return one


IMAGE = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "iVBO"}}


PAPER = {"type": "base64", "media_type": "application/pdf", "data": "JVBERi0="}


@pytest.mark.parametrize(
    ("block", "expected"),
    [
        (
            {
                "type": "document",
                "title": "notes.txt",
                "context": "Old.",
                "source": {"type": "text", "media_type": "text/plain", "data": "All of it."},
            },
            "<document>\nnotes.txt\nOld.\nAll of it.\n</document>",
        ),
        (
            {"type": "document", "title": "a.pdf", "source": PAPER},
            "[document a.pdf left out: application/pdf cannot be read here; send its text]",
        ),
        (
            {"type": "search_result", "title": "T", "source": "s", "content": [text("Found.")]},
            "T (s)\nFound.",
        ),
        (
            {"type": "server_tool_use", "id": "s", "name": "search", "input": {"query": "a"}},
            '[server_tool_use {"name": "search", "input": {"query": "a"}}]',
        ),
        (
            {
                "type": "web_search_tool_result",
                "tool_use_id": "s",
                "content": [{"type": "found", "title": "vLLM", "encrypted_content": "x"}],
            },
            '[web_search_tool_result {"content": [{"type": "found", "title": "vLLM"}]}]',
        ),
        (
            {"type": "server_tool_use", "input": msgspec.Raw(b"9" * 5000)},
            '[server_tool_use {"input": "' + "9" * 5000 + '"}]',
        ),
        ({"type": "of_next_year"}, "[of_next_year left out: it cannot be read here]"),
        ({"type": "document"}, "[document left out: it cannot be read here]"),
    ],
    ids=lambda one: one["type"] if isinstance(one, dict) else "",
)
def test_a_block_that_vllm_refuses_is_said_as_text(block: dict[str, Any], expected: str) -> None:
    assert content(block) == text(expected)
    within = {"type": "tool_result", "tool_use_id": "t", "content": [block, IMAGE]}
    assert content(within) == {**within, "content": [text(expected), IMAGE]}


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ('{"cmd": "ls"}', {"cmd": "ls"}),
        ("", {}),
        ('{"cmd": "echo tr', {"__unparsedToolInput": {"raw": '{"cmd": "echo tr'}}),
        (["a"], {"__unparsedToolInput": {"raw": '["a"]'}}),
    ],
)
def test_the_input_of_a_call_is_an_object(given: Any, expected: Any) -> None:
    call = {"type": "tool_use", "id": "t", "name": "bash", "input": given}
    assert content(call, "assistant") == {**call, "input": expected}


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ("no such file", "Error: no such file"),
        (None, "Error: the tool failed"),
        ("", "Error: the tool failed"),
        ([], [text("Error: the tool failed")]),
        ([text("no"), IMAGE], [text("Error: no"), IMAGE]),
        ([IMAGE], [text("Error: the tool failed"), IMAGE]),
    ],
)
def test_that_a_tool_failed_is_said_in_its_result(given: Any, expected: Any) -> None:
    result = {"type": "tool_result", "tool_use_id": "t", "content": given, "is_error": True}
    assert content(result) == {"type": "tool_result", "tool_use_id": "t", "content": expected}


@pytest.mark.parametrize("message", [{"role": "assistant", "content": None}, {"role": "user"}])
def test_no_content_is_an_empty_text(message: dict[str, Any]) -> None:
    assert after(repair, messages=[*HI, message])["messages"][1] == {**message, "content": ""}


@pytest.mark.parametrize("role", ["system", "developer"])
def test_instructions_among_the_turns_stay_in_their_place(role: str) -> None:
    inline = {"role": role, "content": "Be short."}
    blocks = {"role": role, "content": [BILLING, text("Be kind.")]}
    done = after(repair, messages=[*HI, inline, blocks, *HI])
    assert done == {
        "messages": [
            *HI,
            {"role": "user", "content": "Be short."},
            {"role": "user", "content": [text("Be kind.")]},
            *HI,
        ]
    }


def test_of_a_message_that_is_only_a_billing_line_nothing_is_left() -> None:
    done = after(repair, messages=[*HI, {"role": "system", "content": [BILLING]}])
    assert done == {"messages": HI}


def test_beside_a_repair_every_value_keeps_its_bytes() -> None:
    body = (
        b'{"messages":[{"role":"user","content":"hi"},{"role":"assistant","content":'
        b'[{"type":"document","source":{"type":"text","data":"x"}},'
        b'{"type":"tool_use","id":"t","name":"n","input":{"a" : 1.50, "b":"\\u0041"}}]}]}'
    )
    changed = repair(parse(body))["messages"]
    assert changed is not None
    assert changed.startswith(b'[{"role":"user","content":"hi"},')
    assert b'"input":{"a" : 1.50, "b":"\\u0041"}' in changed


TURN = st.fixed_dictionaries(
    {
        "role": st.sampled_from(["user", "assistant", "system", "developer"]),
        "content": shaped(WORDS, KEYS)
        | st.lists(
            st.fixed_dictionaries(
                {"type": st.sampled_from(WORDS)},
                optional={
                    "content": shaped(WORDS, KEYS),
                    "is_error": st.booleans(),
                    "input": shaped(WORDS, KEYS),
                    "text": st.sampled_from(WORDS),
                    "source": shaped(WORDS, KEYS),
                },
            ),
            max_size=3,
        ),
    }
)


@given(st.lists(TURN, max_size=5), st.lists(TURN, max_size=3))
def test_a_turn_later_the_conversation_begins_with_the_same_bytes(
    turns: list[Any], more: list[Any]
) -> None:
    before = _prompt([*HI, *turns])
    assert _prompt([*HI, *turns, *more]).startswith(before.removesuffix(b"]"))


def _prompt(messages: list[Any]) -> bytes:
    body = msgspec.json.encode({"messages": messages})
    changed = repair(parse(body)).get("messages")
    return changed if changed is not None else bytes(parse(body)["messages"])
