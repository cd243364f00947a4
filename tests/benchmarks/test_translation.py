"""What the translation benchmark times."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest

from benchmarks import translation
from benchmarks.gates import State
from gateway.protocols.sse import Event
from gateway.protocols.translate import Translation

BODIES = [
    (translation.as_messages, translation.messages_request, 24),
    (translation.as_responses, translation.responses_request, 21),
]
Translate = Callable[[bytes], Translation]
Make = Callable[[int], bytes]


@pytest.mark.parametrize(("translate", "make", "tools"), BODIES)
def test_the_request_has_the_size_it_claims_and_all_parts_of_a_conversation(
    translate: Translate, make: Make, tools: int
) -> None:
    body = make(translation.REQUEST_BYTES)
    assert 100_000 <= len(body) < 110_000
    chat = json.loads(translate(body).body)
    assert {message["role"] for message in chat["messages"]} == {
        "system",
        "user",
        "assistant",
        "tool",
    }
    assert len(chat["tools"]) == tools


@pytest.mark.parametrize(("translate", "make", "tools"), BODIES)
@pytest.mark.parametrize(("kind", "events"), translation.chat_events().items())
def test_every_timed_event_says_something(
    translate: Translate, make: Make, tools: int, kind: str, events: list[Event]
) -> None:
    stream = translate(make(0)).stream()
    assert len(events) == translation.EVENTS
    said = [stream.feed(event) for event in events]
    assert all(b"delta" in one for one in said[1:]), kind
    assert said[0], kind


def test_a_case_is_judged_by_what_it_took() -> None:
    slow = translation.Case("slow", lambda: sum(range(200_000)), 0.001, "µs")
    assert slow.gate(1).state is State.NOT_MET
    assert translation.Case("quick", int, 1000.0, "ms").gate(1).state is State.MET
