"""A chat stream as the events of a response."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.errors import BackendFailed, BadRequest, GatewayError, NoBackend
from gateway.protocols.sse import Event, Reader
from gateway.protocols.translate import StreamTranslation, Translation
from gateway.protocols.translate.responses import translate
from tests.protocols.translate.chat_streams import cut, deltas, frame, played, stream, tool
from tests.support.grammar_responses import Grammar, Payload, check, payloads

SPAWN = {"type": "function", "name": "spawn"}
TOOLS = [
    {"type": "function", "name": "shell"},
    {"type": "namespace", "name": "agents", "tools": [SPAWN]},
    {"type": "custom", "name": "patch"},
]
USAGE = {
    "input_tokens": 20,
    "input_tokens_details": {"cached_tokens": 16, "cache_write_tokens": 0},
    "output_tokens": 9,
    "output_tokens_details": {"reasoning_tokens": 4},
    "total_tokens": 29,
}


def asked(**more: Any) -> Translation:
    request = {"model": "m", "input": "hi", "tools": TOOLS, "stream": True, **more}
    return translate(json.dumps(request).encode(), model="alias", request_id="r1", created=7)


def events(*said: dict[str, Any], **more: Any) -> list[Payload]:
    """The events for a stream, which is checked against the grammar."""
    out = played(asked().stream(), [stream(*said, **more)])
    check(out)
    return payloads(out)


def kinds(found: list[Payload]) -> list[str]:
    return [one["type"].removeprefix("response.") for one in found]


def output(*said: dict[str, Any], **more: Any) -> list[Payload]:
    found: list[Payload] = events(*said, **more)[-1]["response"]["output"]
    return found


def feed(translation: StreamTranslation, data: bytes) -> list[Payload]:
    (event,) = Reader().feed(data)
    return payloads(translation.feed(event))


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


# What is called


def test_a_call_streams_its_arguments() -> None:
    found = events(tool(0, "", "shell", "c1"), tool(0, '{"a"'), tool(0, ":1}"), finish="tool_calls")
    assert kinds(found)[2:-1] == [
        "output_item.added",
        "function_call_arguments.delta",
        "function_call_arguments.delta",
        "function_call_arguments.done",
        "output_item.done",
    ]
    assert [one["delta"] for one in found if "delta" in one] == ['{"a"', ":1}"]
    assert found[-1]["response"]["output"] == [
        {
            "id": "fc_r1_0",
            "type": "function_call",
            "call_id": "c1",
            "name": "shell",
            "arguments": '{"a":1}',
            "status": "completed",
        }
    ]


def test_a_namespaced_call_comes_back_under_both_names_from_its_first_event() -> None:
    found = events(tool(0, "{}", "agents__spawn", "c1"))
    for item in (found[2]["item"], found[-1]["response"]["output"][0]):
        assert (item["name"], item["namespace"]) == ("spawn", "agents")


def test_a_custom_call_streams_its_input_unescaped() -> None:
    found = events(tool(0, '{"inp', "patch", "c1"), tool(0, 'ut": "a\\'), tool(0, 'nb"}'))
    assert kinds(found)[2:-1] == [
        "output_item.added",
        "custom_tool_call_input.delta",
        "custom_tool_call_input.delta",
        "custom_tool_call_input.done",
        "output_item.done",
    ]
    assert [one["delta"] for one in found if "delta" in one] == ["a", "\nb"]
    assert found[-1]["response"]["output"] == [
        {
            "id": "ctc_r1_0",
            "type": "custom_tool_call",
            "call_id": "c1",
            "name": "patch",
            "input": "a\nb",
            "status": "completed",
        }
    ]


def test_custom_input_of_another_form_comes_with_its_end() -> None:
    found = events(tool(0, "*** Begin", "patch", "c1"), tool(0, " Patch"))
    assert [one["delta"] for one in found if "delta" in one] == ["*** Begin Patch"]
    assert found[-1]["response"]["output"][0]["input"] == "*** Begin Patch"


def test_calls_side_by_side_keep_their_pieces_apart() -> None:
    said = [
        tool(0, '{"a":', "shell", "c1"),
        tool(1, '{"b":', "shell", "c2"),
        tool(0, "1}"),
        tool(1, "2}"),
    ]
    assert [(item["call_id"], item["arguments"]) for item in output(*said)] == [
        ("c1", '{"a":1}'),
        ("c2", '{"b":2}'),
    ]


@pytest.mark.parametrize("index", [None, 0])
def test_calls_that_are_not_numbered_are_told_apart_by_their_ids(index: int | None) -> None:
    said = [
        tool(index, '{"a":', "shell", "c1"),
        tool(index, "1}"),
        tool(index, '{"b":', "shell", "c2"),
        tool(index, "2}"),
    ]
    assert [item["arguments"] for item in output(*said)] == ['{"a":1}', '{"b":2}']


def test_calls_without_ids_or_with_the_same_one_get_their_own() -> None:
    said = [tool(n, "{}", "shell", id) for n, id in enumerate([None, "c", "c"])]
    assert [item["call_id"] for item in output(*said)] == ["call_r1_0", "c", "call_r1_2"]


def test_a_repeated_name_and_id_is_the_same_call() -> None:
    said = [tool(0, piece, "shell", "c1") for piece in ('{"a"', ":1", "}")]
    assert [item["arguments"] for item in output(*said)] == ['{"a":1}']


def test_a_call_is_announced_with_its_name_however_late_that_comes() -> None:
    items = output(tool(0, '{"a"', None, "c1"), tool(0, ":", "shell"), tool(0, "1}"))
    assert [(item["name"], item["arguments"]) for item in items] == [("shell", '{"a":1}')]


def test_arguments_may_come_as_an_object_or_not_at_all() -> None:
    items = output(tool(0, {"a": 1}, "shell", "c1"), tool(1, None, "shell", "c2"))
    assert [item["arguments"] for item in items] == ['{"a":1}', "{}"]


def test_text_while_a_call_is_open_is_an_item_of_its_own() -> None:
    items = output(
        {"content": "a"}, tool(0, '{"a":', "shell", "c1"), {"content": "b"}, tool(0, "1}")
    )
    assert [item["type"] for item in items] == ["message", "function_call", "message"]
    assert items[1]["arguments"] == '{"a":1}'


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
def test_a_cut_answer_is_incomplete_and_so_are_its_items(finish: str, reason: str) -> None:
    response = events({"content": "a"}, finish=finish)[-1]["response"]
    assert response["status"] == "incomplete"
    assert response["incomplete_details"] == {"reason": reason}
    assert response["output"][0]["status"] == "incomplete"


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
