"""A chat stream as the events of a response."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.errors import BackendFailed, BadRequest, GatewayError, NoBackend
from gateway.protocols.sse import Event, Reader
from tests.protocols.translate.chat_streams import cut, deltas, frame, played, stream, tool
from tests.protocols.translate.responses_support import asked, events, feed, kinds, output
from tests.support.grammar_responses import Grammar, check, payloads

USAGE = {
    "input_tokens": 20,
    "input_tokens_details": {"cached_tokens": 16, "cache_write_tokens": 0},
    "output_tokens": 9,
    "output_tokens_details": {"reasoning_tokens": 4},
    "total_tokens": 29,
}


# What is said


def test_text_is_one_message_from_created_to_completed() -> None:
    found = events({"content": "Hel"}, {"content": "lo"})
    assert kinds(found) == [
        "created",
        "in_progress",
        "output_item.added",
        "content_part.added",
        "output_text.delta",
        "output_text.delta",
        "output_text.done",
        "content_part.done",
        "output_item.done",
        "completed",
    ]
    assert [one["sequence_number"] for one in found] == list(range(10))
    assert found[4] == {
        "type": "response.output_text.delta",
        "sequence_number": 4,
        "item_id": "msg_r1_0",
        "output_index": 0,
        "content_index": 0,
        "delta": "Hel",
        "logprobs": [],
    }
    response = found[-1]["response"]
    part = {"type": "output_text", "text": "Hello", "annotations": [], "logprobs": []}
    assert response["output"] == [
        {
            "id": "msg_r1_0",
            "type": "message",
            "role": "assistant",
            "status": "completed",
            "content": [part],
        }
    ]
    assert (response["id"], response["model"], response["created_at"]) == ("resp_r1", "alias", 7)
    assert response["usage"] == USAGE


def test_reasoning_then_text_are_two_items() -> None:
    found = events({"reasoning": "hm"}, {"reasoning_content": "m"}, {"content": "yo"})
    assert kinds(found)[2:9] == [
        "output_item.added",
        "reasoning_text.delta",
        "reasoning_text.delta",
        "reasoning_text.done",
        "output_item.done",
        "output_item.added",
        "content_part.added",
    ]
    assert found[-1]["response"]["output"][0] == {
        "id": "rs_r1_0",
        "type": "reasoning",
        "summary": [],
        "content": [{"type": "reasoning_text", "text": "hmm"}],
        "status": "completed",
    }


def test_one_frame_may_say_both() -> None:
    items = output({"reasoning": "hm", "content": "yo"})
    assert [item["type"] for item in items] == ["reasoning", "message"]


def test_a_refusal_is_a_part_of_its_own_kind() -> None:
    (item,) = output({"refusal": "N"}, {"refusal": "o"})
    assert item["content"] == [{"type": "refusal", "refusal": "No"}]


def test_an_answer_of_nothing_is_an_empty_message() -> None:
    """Codex asks again where there is no item."""
    (item,) = output()
    assert item["content"][0]["text"] == ""


# When it leaves


def test_everything_generated_leaves_with_its_own_frame() -> None:
    translation = asked().stream()
    assert kinds(feed(translation, frame({"role": "assistant", "content": ""}))) == [
        "created",
        "in_progress",
    ]
    for delta, kind in [
        ({"reasoning": "h"}, "reasoning_text.delta"),
        ({"content": "a"}, "output_text.delta"),
        (tool(0, "", "shell", "c1"), "output_item.added"),
        (tool(0, "{"), "function_call_arguments.delta"),
        (tool(1, '{"input":"a', "patch", "c2"), "custom_tool_call_input.delta"),
    ]:
        assert kinds(feed(translation, frame(delta)))[-1] == kind


def test_calls_are_done_when_the_answer_stops_before_its_usage_comes() -> None:
    translation = asked().stream()
    feed(translation, frame(tool(0, "{}", "shell", "c1")))
    assert kinds(feed(translation, frame({}, "tool_calls"))) == [
        "function_call_arguments.done",
        "output_item.done",
    ]


def test_comments_other_choices_and_the_end_mark_say_nothing() -> None:
    translation = asked().stream()
    feed(translation, frame({"content": "a"}))
    other = frame({"content": "b"}).replace(b'"choices": [{"index": 0', b'"choices": [{"index": 1')
    for data in (b": hi\n\n", b"data: [DONE]\n\n", other):
        assert feed(translation, data) == []


# How it ends


@pytest.mark.parametrize(
    ("finish", "reason"),
    [("length", "max_output_tokens"), ("content_filter", "content_filter")],
)
def test_a_cut_answer_is_incomplete_and_so_is_its_last_item(finish: str, reason: str) -> None:
    response = events({"content": "a"}, tool(0, "{", "shell", "c1"), finish=finish)[-1]["response"]
    assert response["status"] == "incomplete"
    assert response["incomplete_details"] == {"reason": reason}
    assert [item["status"] for item in response["output"]] == ["completed", "incomplete"]


def test_cut_arguments_are_told_as_they_are() -> None:
    (item,) = output(tool(0, '{"a', "shell", "c1"), finish="length")
    assert (item["arguments"], item["status"]) == ('{"a', "incomplete")


def test_without_usage_none_is_stated() -> None:
    assert events({"content": "a"}, usage=None)[-1]["response"]["usage"] is None


@pytest.mark.parametrize("finish", ["abort", "error"])
def test_a_server_that_gives_up_has_not_answered(finish: str) -> None:
    translation = asked().stream()
    (event,) = Reader().feed(frame({}, finish))
    with pytest.raises(ValueError, match="gave up"):
        translation.feed(event)
    assert kinds(payloads(translation.fail(BackendFailed("x"), "r1"))) == ["created", "failed"]


@pytest.mark.parametrize("data", [b"data: {}\n\n", b'data: {"error": {"message": "x"}}\n\n'])
def test_what_is_no_frame_is_a_fault(data: bytes) -> None:
    (event,) = Reader().feed(data)
    with pytest.raises(ValueError):
        asked().stream().feed(event)


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (BackendFailed("x"), "server_error"),
        (NoBackend("x"), "server_is_overloaded"),
        (BadRequest("x", code="context_length_exceeded"), "context_length_exceeded"),
    ],
)
@pytest.mark.parametrize("said", [[], [{"content": "a"}], [tool(0, "{", "shell", "c1")]])
def test_a_failure_ends_the_stream_under_its_own_id(
    error: GatewayError, code: str, said: list[dict[str, Any]]
) -> None:
    translation = asked().stream()
    out = b"".join(translation.feed(event) for event in Reader().feed(b"".join(map(frame, said))))
    out += translation.fail(error, "r1")
    response = check(out)
    assert response["error"] == {"code": code, "message": "x"}
    assert (response["id"], response["model"]) == ("resp_r1", "alias")
    assert "response.output_item.done" not in out.decode(), "Codex would run a call cut half-way"


def test_signs_of_life_are_events_and_open_the_stream() -> None:
    translation = asked().stream()
    out = translation.keep_alive()
    assert kinds(payloads(out)) == ["created", "in_progress"]
    out += translation.keep_alive()
    out += translation.feed(Event(b"", frame({"content": "a"})[6:].strip()))
    out += translation.keep_alive() + translation.close()
    check(out)
    assert kinds(payloads(out)).count("in_progress") == 3


# Whatever comes


@given(deltas(), st.sampled_from(["stop", "length", "tool_calls"]))
def test_any_answer_is_well_formed(said: list[dict[str, Any]], finish: str) -> None:
    check(played(asked().stream(), [stream(*said, finish=finish)]))


@given(deltas(), st.lists(st.integers(1, 40)))
def test_any_chunking_gives_the_same_events(said: list[dict[str, Any]], sizes: list[int]) -> None:
    data = stream(*said)
    assert played(asked().stream(), cut(data, sizes)) == played(asked().stream(), [data])


@given(deltas(), st.integers(0, 12), st.integers(0, 12))
def test_failing_anywhere_is_well_formed(said: list[dict[str, Any]], at: int, alive: int) -> None:
    translation, grammar = asked().stream(), Grammar()
    for number, event in enumerate(Reader().feed(stream(*said))[:at]):
        out = translation.keep_alive() if number == alive else b""
        for payload in payloads(out + translation.feed(event)):
            grammar.take(payload)
    for payload in payloads(translation.fail(BackendFailed("x"), "r1")):
        grammar.take(payload)
    assert grammar.final is not None
