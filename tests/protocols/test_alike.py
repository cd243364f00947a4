"""Runs of alike events, against a reading of each event by itself."""

from __future__ import annotations

import json

import pytest
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
    own = b'"' not in text and b"\n" not in text and text[-1:] != b"\\"
    return whole and text != b"" and own


def _one_by_one(events: list[bytes]) -> tuple[int, int]:
    """What `run` is to say of them."""
    count = next((n for n, event in enumerate(events) if not _is_alike(event)), len(events))
    return sum(map(len, events[:count])), count


_TEXTS = ["a", "tok ", '"', "\\", "\n", "é", "", "x" * 5000, '","n": 1']
_OTHERS = [
    _event("a", finish_reason="stop"),
    _event("a").replace(b"chatcmpl-1", b"chatcmpl-2"),
    _event("a|b").replace(b"|", b"\n"),
    b"data: [DONE]\n\n",
    b": hi\n\n",
    b"\n\n",
]
_EVENTS = [*map(_event, _TEXTS), *_OTHERS]


@given(st.lists(st.sampled_from(_EVENTS)))
def test_a_run_ends_before_the_first_event_that_is_not_alike(events: list[bytes]) -> None:
    assert _learnt().run(b"".join(events), 0) == _one_by_one(events)


@pytest.mark.parametrize("event", _EVENTS)
@pytest.mark.parametrize("behind", [0, 1, 30])
def test_an_event_among_many(event: bytes, behind: int) -> None:
    """Many are looked at together."""
    events = [*[_event("a")] * 30, event, *[_event("b")] * behind]
    assert _learnt().run(b"".join(events), 0) == _one_by_one(events)


def test_thousands_of_events_are_one_run() -> None:
    events = [_event(f"token {number}") for number in range(5000)]
    data = b"".join(events)
    assert _learnt().run(data, 0) == (len(data), 5000)
    assert _learnt().run(data, len(events[0])) == (len(data), 4999)


def test_half_an_event_at_the_end_is_left() -> None:
    data = b"".join([_event("a")] * 30)
    assert _learnt().run(data[:-1], 0) == (len(data) - len(_event("a")), 29)
