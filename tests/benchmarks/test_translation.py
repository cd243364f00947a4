"""What the translation benchmark times."""

from __future__ import annotations

import json

import pytest

from benchmarks import translation
from benchmarks.gates import State
from gateway.protocols.sse import Event
from gateway.protocols.translate.messages import translate


def test_the_request_has_the_size_it_claims_and_all_parts_of_a_conversation() -> None:
    body = translation.messages_request(translation.REQUEST_BYTES)
    assert 100_000 <= len(body) < 110_000
    chat = json.loads(translate(body, model="m", request_id="r").body)
    assert {message["role"] for message in chat["messages"]} == {
        "system",
        "user",
        "assistant",
        "tool",
    }
    assert len(chat["tools"]) == 24


@pytest.mark.parametrize(("kind", "events"), translation.chat_events().items())
def test_every_timed_event_says_something(kind: str, events: list[Event]) -> None:
    begun = translate(translation.messages_request(0), model="m", request_id="r")
    stream = begun.stream()
    assert len(events) == translation.EVENTS
    assert all(b"_delta" in stream.feed(event) for event in events), kind


def test_a_case_is_judged_by_what_it_took() -> None:
    slow = translation.Case("slow", lambda: sum(range(200_000)), 0.001, "µs")
    assert slow.gate(1).state is State.NOT_MET
    assert translation.Case("quick", int, 1000.0, "ms").gate(1).state is State.MET
