"""What holds for every chat stream that becomes a Messages stream."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gateway.protocols.sse import Reader
from gateway.protocols.translate.messages import translate
from tests.support.anthropic_sdk import Sdk
from tests.support.chat_answers import Answer, answers, call, cut, frame, sse
from tests.support.grammar_messages import check

TRANSLATION = translate(
    b'{"model": "backend", "messages": [{"role": "user", "content": "hi"}]}',
    model="m",
    request_id="r1",
)


@pytest.fixture(scope="module")
def sdk() -> Iterator[Sdk]:
    one = Sdk()
    yield one
    one.close()


def through(*pieces: bytes) -> bytes:
    """What the client gets for a backend's bytes, however they are cut."""
    reader, translation = Reader(), TRANSLATION.stream()
    sent = b"".join(translation.feed(event) for piece in pieces for event in reader.feed(piece))
    return sent + translation.close()


@settings(max_examples=60)
@given(answers(interleaved=True), st.lists(st.integers(0, 5000), max_size=8))
def test_any_cut_gives_the_same_events(answer: Answer, places: list[int]) -> None:
    whole = answer.stream()
    pieces = [piece.encode("latin-1") for piece in cut(whole.decode("latin-1"), places)]
    assert through(*pieces) == through(whole)


@settings(max_examples=60)
@given(answer=answers())
def test_the_sdk_gathers_what_the_whole_reply_says(answer: Answer, sdk: Sdk) -> None:
    stream = through(answer.stream())
    check(stream)
    reply = TRANSLATION.whole(answer.whole())
    assert sdk.streamed(stream) == sdk.whole(reply)


@settings(max_examples=60)
@given(answer=answers(interleaved=True))
def test_interleaved_pieces_lose_nothing(answer: Answer, sdk: Sdk) -> None:
    stream = through(answer.stream())
    check(stream)
    reply = TRANSLATION.whole(answer.whole())
    assert _by_kind(sdk.streamed(stream)) == _by_kind(sdk.whole(reply))


@settings(max_examples=60)
@given(pieces=st.lists(st.text(max_size=6), max_size=5), text=st.text(max_size=3))
def test_broken_arguments_never_lose_the_answer(pieces: list[str], text: str, sdk: Sdk) -> None:
    deltas = [call(0, name="f", id="c"), *(call(0, piece) for piece in pieces), {"content": text}]
    stream = through(sse(*map(frame, deltas)))
    check(stream)
    found = sdk.streamed(stream)["content"]
    assert isinstance(found[0]["input"], dict)
    assert "".join(block["text"] for block in found[1:]) == text


@settings(max_examples=60)
@given(pieces=st.lists(st.sampled_from(list('{}[]":,\\ud8dc0-1e.tn \n"')), max_size=12))
def test_nearly_json_never_loses_the_answer(pieces: list[str], sdk: Sdk) -> None:
    deltas = [call(0, '{"a":', name="f", id="c"), *(call(0, piece) for piece in pieces)]
    stream = through(sse(*map(frame, deltas)))
    check(stream)
    assert isinstance(sdk.streamed(stream)["content"][0]["input"], dict)


def _by_kind(message: dict[str, Any]) -> dict[str, Any]:
    content = message.pop("content")
    texts = "".join(block["text"] for block in content if block["type"] == "text")
    thoughts = [block for block in content if block["type"] == "thinking"]
    calls = sorted((b for b in content if b["type"] == "tool_use"), key=lambda b: str(b["id"]))
    return {**message, "texts": texts, "thoughts": thoughts, "calls": calls}
