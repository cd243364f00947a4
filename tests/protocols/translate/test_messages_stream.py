"""Chat streams as Messages streams."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from anthropic import APIStatusError

from gateway.errors import BackendFailed
from gateway.protocols.sse import Event, Reader
from gateway.protocols.translate import StreamTranslation
from gateway.protocols.translate.messages import translate
from tests.support.anthropic_sdk import Sdk
from tests.support.chat_answers import Answer, call, frame, sse, usage_frame
from tests.support.grammar_messages import check, events

_REQUEST = b'{"model": "backend", "messages": [{"role": "user", "content": "hi"}]}'


@pytest.fixture(scope="module")
def sdk() -> Iterator[Sdk]:
    one = Sdk()
    yield one
    one.close()


def started() -> StreamTranslation:
    return translate(_REQUEST, model="m", request_id="r1").stream()


def through(*pieces: bytes) -> bytes:
    """What the client gets for a backend's bytes, however they are cut."""
    reader, translation = Reader(), started()
    sent = b"".join(translation.feed(event) for piece in pieces for event in reader.feed(piece))
    return sent + translation.close()


def blocks(stream: bytes) -> list[Any]:
    """The content blocks of a stream, as kind and pieces."""
    found: list[Any] = []
    for event in check(stream):
        if event["type"] == "content_block_start":
            found.append([event["content_block"]["type"]])
        elif event["type"] == "content_block_delta":
            found[-1].append(next(v for k, v in event["delta"].items() if k != "type"))
    return found


def ending(stream: bytes) -> Any:
    return next(event for event in check(stream) if event["type"] == "message_delta")


def test_an_answer_passes_with_each_delta_in_an_event_of_its_own() -> None:
    stream = through(Answer(thoughts=["h", "m"], texts=["a", "b"]).stream())
    assert blocks(stream) == [["thinking", "h", "m", "sig_r1"], ["text", "a", "b"]]
    start, end = check(stream)[0]["message"], ending(stream)
    assert (start["id"], start["model"]) == ("msg_r1", "m")
    assert end["delta"] == {"stop_reason": "end_turn", "stop_sequence": None}
    assert end["usage"] == {
        "input_tokens": 3,
        "cache_creation_input_tokens": 0,
        "cache_read_input_tokens": 4,
        "output_tokens": 2,
    }


@pytest.mark.parametrize(
    ("delta", "kind"),
    [
        ({"content": "a"}, "content_block_delta"),
        ({"reasoning": "a"}, "content_block_delta"),
        ({"refusal": "a"}, "content_block_delta"),
        (call(0, name="f", id="c"), "content_block_start"),
    ],
)
def test_what_was_generated_leaves_with_its_event(delta: dict[str, Any], kind: str) -> None:
    translation = started()
    (role, first) = Reader().feed(sse(frame({"role": "assistant"}), frame(delta), done=False))
    assert [event["type"] for event in events(translation.feed(role))] == ["message_start"]
    assert events(translation.feed(first))[-1]["type"] == kind


def test_arguments_leave_as_they_come() -> None:
    translation = started()
    deltas = [call(0, name="f", id="c"), call(0, '{"a": '), call(0, '"b'), call(0, '"}')]
    sent = [
        events(translation.feed(e)) for e in Reader().feed(sse(*map(frame, deltas), done=False))
    ]
    pieces = [[e["delta"]["partial_json"] for e in one] for one in sent[1:]]
    assert pieces == [['{"a": '], ['"b'], ['"}']]


def test_blocks_close_with_the_reason_to_stop_and_not_only_at_the_end() -> None:
    translation = started()
    frames = sse(frame({"content": "a"}), frame({}, "stop"), done=False)
    first, last = (events(translation.feed(event)) for event in Reader().feed(frames))
    assert [event["type"] for event in last] == ["content_block_stop"]
    assert first[-1]["type"] == "content_block_delta"


def test_text_within_a_call_waits_for_its_end() -> None:
    deltas = [
        call(0, '{"a"', name="f", id="c"),
        {"content": "x"},
        {"content": "y"},
        call(0, ":1}"),
        {"content": "z"},
    ]
    assert blocks(through(sse(*map(frame, deltas)))) == [
        ["tool_use", '{"a"', ":1}"],
        ["text", "xy", "z"],
    ]


def test_text_behind_a_complete_call_does_not_wait() -> None:
    translation = started()
    deltas = [call(0, "{}", name="f", id="c"), {"content": "x"}]
    *_, last = Reader().feed(sse(*map(frame, deltas), done=False))
    for event in Reader().feed(sse(frame(deltas[0]), done=False)):
        translation.feed(event)
    kinds = [event["type"] for event in events(translation.feed(last))]
    assert kinds == ["content_block_stop", "content_block_start", "content_block_delta"]


def test_interleaved_calls_come_one_after_the_other() -> None:
    deltas = [
        call(0, name="f", id="c0"),
        call(1, name="g", id="c1"),
        call(1, '{"b":'),
        call(0, '{"a":'),
        call(1, "2}"),
        call(0, "1}"),
    ]
    stream = through(sse(*map(frame, deltas)))
    assert blocks(stream) == [["tool_use", '{"a":', "1}"], ["tool_use", '{"b":2}']]
    starts = [e["content_block"] for e in check(stream) if e["type"] == "content_block_start"]
    assert [(block["id"], block["name"]) for block in starts] == [("c0", "f"), ("c1", "g")]


@pytest.mark.parametrize(
    "deltas",
    [
        # vLLM before 0.11: another id with every piece.
        [call(0, name="f", id="a"), call(0, "{", id="b"), call(0, "}", id="c")],
        # No index.
        [
            {"tool_calls": [{"id": "a", "function": {"name": "f"}}]},
            {"tool_calls": [{"function": {"arguments": "{}"}}]},
        ],
        # The name later than the arguments.
        [call(0, "{", id="a"), call(0, "}", name="f")],
    ],
)
def test_one_call_stays_one_however_servers_mark_its_pieces(deltas: list[dict[str, Any]]) -> None:
    stream = through(sse(*map(frame, deltas)))
    (start,) = [e["content_block"] for e in check(stream) if e["type"] == "content_block_start"]
    assert (start["id"], start["name"]) == ("a", "f")
    assert "".join(blocks(stream)[0][1:]) == "{}"


def test_whole_calls_that_all_claim_to_be_the_first_are_several() -> None:
    deltas = [call(0, "{}", name="f", id="a"), call(0, '{"x":1}', name="f", id="b")]
    assert blocks(through(sse(*map(frame, deltas)))) == [
        ["tool_use", "{}"],
        ["tool_use", '{"x":1}'],
    ]


def test_a_call_without_an_id_gets_one() -> None:
    (start, *_) = [
        event["content_block"]
        for event in check(through(sse(frame(call(0, "{}", name="f")))))
        if event["type"] == "content_block_start"
    ]
    assert start["id"] == "toolu_r1_0"


@pytest.mark.parametrize("frames", [(), (frame({"role": "assistant", "content": ""}),)])
def test_an_empty_answer_is_a_whole_stream(frames: tuple[dict[str, Any], ...], sdk: Sdk) -> None:
    stream = through(sse(*frames))
    assert blocks(stream) == [["text"]]
    assert sdk.streamed(stream)["content"] == [{"type": "text", "text": ""}]


@pytest.mark.parametrize(
    ("finish", "stop_reason", "told"),
    [
        ("length", None, ("max_tokens", None)),
        ("tool_calls", None, ("tool_use", None)),
        ("function_call", None, ("tool_use", None)),
        ("content_filter", None, ("refusal", None)),
        ("stop", "END", ("stop_sequence", "END")),
        ("stop", 128009, ("end_turn", None)),
        ("length", "END", ("max_tokens", None)),
        ("something new", None, ("end_turn", None)),
    ],
)
def test_reasons_to_stop(finish: str, stop_reason: Any, told: tuple[str, str | None]) -> None:
    answer = Answer(texts=["a"], finish=finish, stop_reason=stop_reason)
    delta = ending(through(answer.stream()))["delta"]
    assert (delta["stop_reason"], delta["stop_sequence"]) == told


def test_a_forced_call_ends_with_tool_use_though_the_server_says_stop() -> None:
    stream = through(Answer(calls=[("f", ["{}"])], finish="stop").stream())
    assert ending(stream)["delta"]["stop_reason"] == "tool_use"


def test_a_refusal_is_text_and_the_reason_to_stop() -> None:
    stream = through(sse(frame({"refusal": "no"}), frame({}, "stop")))
    assert blocks(stream) == [["text", "no"]]
    assert ending(stream)["delta"]["stop_reason"] == "refusal"


def test_other_choices_are_passed_over() -> None:
    stream = through(sse(frame({"content": "a"}), frame({"content": "b"}, index=1)))
    assert blocks(stream) == [["text", "a"]]


def test_comments_say_nothing_and_a_ping_may_open_the_stream(sdk: Sdk) -> None:
    translation = started()
    ping = translation.keep_alive()
    assert ping == b'event: ping\ndata: {"type": "ping"}\n\n'
    (comment,) = Reader().feed(b": keep-alive\n\n")
    assert translation.feed(comment) == b""
    (first,) = Reader().feed(sse(frame({"content": "a"}), done=False))
    stream = ping + translation.feed(first) + ping + translation.close()
    assert blocks(stream) == [["text", "a"]]
    assert sdk.streamed(stream)["content"] == [{"type": "text", "text": "a"}]


@pytest.mark.parametrize("deltas", [[], [{"content": "a"}], [call(0, '{"a', name="f", id="c")]])
def test_a_failure_is_told_without_closing_what_is_open(
    deltas: list[dict[str, Any]], sdk: Sdk
) -> None:
    translation = started()
    read = Reader().feed(sse(*map(frame, deltas), done=False))
    stream = b"".join(map(translation.feed, read))
    stream += translation.fail(BackendFailed("it broke"), "req_1")
    last = check(stream)[-1]
    assert last["error"] == {"type": "api_error", "message": "it broke"}
    assert last["request_id"] == "req_1"
    assert "content_block_stop" not in [event["type"] for event in events(stream)]
    with pytest.raises(APIStatusError, match="it broke"):
        sdk.streamed(stream)


def test_an_event_that_is_no_frame_is_refused() -> None:
    with pytest.raises(ValueError):
        started().feed(Event(b"", b'{"error": {"message": "died"}}'))


def test_usage_that_comes_early_stands_in_the_first_event() -> None:
    first = {**frame({"role": "assistant"}), "usage": usage_frame(9, 2, 0)["usage"]}
    start = check(through(sse(first)))[0]["message"]["usage"]
    assert (start["input_tokens"], start["cache_read_input_tokens"]) == (7, 2)
