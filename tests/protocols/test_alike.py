"""Runs of alike events, against a reading of each event by itself."""

from __future__ import annotations

import json

from hypothesis import given
from hypothesis import strategies as st

from gateway.protocols.alike import Alike


def _event(text: str, **more: object) -> bytes:
    frame = {"id": "chatcmpl-1", "choices": [{"delta": {"content": text}, **more}], "n": None}
    return b"data: " + json.dumps(frame).encode() + b"\n\n"


def _learnt() -> Alike:
    alike = Alike()
    alike.learn(_event("first"), _event("first"))
    return alike


def _is_alike(event: bytes) -> bool:
    """What one event means by itself, by another way than the code's: the text between the rest."""
    head, tail = _event("|").split(b"|")
    text = event.removeprefix(head).removesuffix(tail)
    whole = len(text) == len(event) - len(head) - len(tail)
    return whole and text != b"" and b'"' not in text and text[-1:] != b"\\"


@given(st.lists(st.sampled_from(["a", "tok ", '"', "\\", "\n", "é", "", "x" * 5000, '","n": 1'])))
def test_a_run_ends_before_the_first_event_that_is_not_alike(texts: list[str]) -> None:
    events = [_event(text) for text in texts]
    expected = next((n for n, e in enumerate(events) if not _is_alike(e)), len(events))
    end, count = _learnt().run(b"".join(events), 0)
    assert (end, count) == (sum(map(len, events[:expected])), expected)


def test_thousands_of_events_are_one_run() -> None:
    events = [_event(f"token {number}") for number in range(5000)]
    data = b"".join(events)
    assert _learnt().run(data, 0) == (len(data), 5000)
    assert _learnt().run(data, len(events[0])) == (len(data), 4999)


def test_an_event_of_another_kind_ends_the_run() -> None:
    start = [_event("a")] * 30
    assert _learnt().run(b"".join([*start, _event("b", finish_reason="stop")]), 0)[1] == 30


def test_half_an_event_at_the_end_is_left() -> None:
    data = b"".join([_event("a")] * 30)
    assert _learnt().run(data[:-1], 0) == (len(data) - len(_event("a")), 29)
