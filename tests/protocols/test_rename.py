"""The model's name in replies: its own place, and no other."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.protocols.rename import Renamer, rename
from gateway.protocols.sse import Reader

OLD, NEW = b"org/Up-70B", b"mine"


def reply(text: str) -> bytes:
    return rename(text.encode(), OLD, NEW)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ('{"id":"1","model":"org/Up-70B","x":1}', '{"id":"1","model":"mine","x":1}'),
        ('{"id": "1", "model": "org/Up-70B"}', '{"id": "1", "model": "mine"}'),
        ('{\n "model" :\t"org/Up-70B"\n}', '{\n "model" :\t"mine"\n}'),
        ('{"model":"another"}', '{"model":"mine"}'),
        ('{"model":null}', '{"model":null}'),
        ('{"choices":[{"model":"a"}],"model":"b"}', '{"choices":[{"model":"a"}],"model":"mine"}'),
        (
            '{"type":"message_start","message":{"id":"1","model":"org/Up-70B"}}',
            '{"type":"message_start","message":{"id":"1","model":"mine"}}',
        ),
        (
            '{"response":{"metadata":{"model":"org/Up-70B"},"model":"org/Up-70B"}}',
            '{"response":{"metadata":{"model":"org/Up-70B"},"model":"mine"}}',
        ),
        ('{"delta":{"model":"org/Up-70B"}}', '{"delta":{"model":"org/Up-70B"}}'),
        (
            '{"delta":"{\\"model\\":\\"org/Up-70B\\"}"}',
            '{"delta":"{\\"model\\":\\"org/Up-70B\\"}"}',
        ),
        ('{"x":"model","model":"org/Up-70B"}', '{"x":"model","model":"mine"}'),
        ("not json", "not json"),
        ('{"model":"org/Up-70B"', '{"model":"mine"'),
        ("", ""),
    ],
)
def test_places(before: str, after: str) -> None:
    assert reply(before) == after.encode()
    assert rename(b"data: " + before.encode() + b"\n\n", OLD, NEW) == (
        b"data: " + after.encode() + b"\n\n"
    )


def test_a_name_like_a_field_is_not_mistaken_for_it() -> None:
    assert rename(b'data: {"m":1}\n\n', b"m", NEW) == b'data: {"m":1}\n\n'


def test_names_are_written_as_json() -> None:
    old, new = 'q"\\é'.encode(), 'n"\\😀'.encode()
    before = json.dumps({"model": old.decode()}, ensure_ascii=False).encode()
    assert json.loads(rename(before, old, new)) == {"model": new.decode()}


def test_without_a_name_nothing_is_copied() -> None:
    event = b'event: ping\ndata: {"type": "ping"}\n\n'
    assert rename(event, OLD, NEW) is event
    assert Renamer(OLD, NEW).event(event) is event


def chunk(content: Any, model: str = OLD.decode(), **more: Any) -> bytes:
    frame = {"id": "c", "model": model, "choices": [{"delta": {"content": content}}], **more}
    return b"data: " + json.dumps(frame, separators=(",", ":")).encode() + b"\n\n"


def data(raw: bytes) -> Any:
    (event,) = Reader().feed(raw)
    return json.loads(event.data)


@given(
    st.lists(
        st.tuples(
            st.text(max_size=4) | st.dictionaries(st.just("model"), st.just("x")),
            st.sampled_from([OLD.decode(), "org/Up-70B-long", "b", ""]),
            st.dictionaries(st.sampled_from(["usage", "model2", "created"]), st.integers()),
        ),
        max_size=6,
    )
)
def test_a_stream_is_renamed_as_its_events_are(frames: list[tuple[Any, str, Any]]) -> None:
    """Names that begin alike, and one that changes in mid-stream, included."""
    renamer = Renamer(OLD, NEW)
    for content, model, more in frames:
        raw = chunk(content, model, **more)
        assert renamer.event(raw) == rename(raw, OLD, NEW)
        assert data(renamer.event(raw)) == {**data(raw), "model": NEW.decode()}


def test_an_event_that_only_begins_like_the_others() -> None:
    renamer = Renamer(OLD, NEW)
    renamer.event(b'data: {"model":"org/Up-70B","x":1}\n\n')
    assert renamer.event(b'data: {"model":"org/Up-70B-2"}\n\n') == b'data: {"model":"mine"}\n\n'
    assert renamer.event(b'data: {"model":"org') == b'data: {"model":"org'
    assert renamer.event(b"data: [DONE]\n\n") == b"data: [DONE]\n\n"


def test_events_with_names_and_comments() -> None:
    renamer = Renamer(OLD, NEW)
    start = b'event: message_start\ndata: {"type":"message_start","message":{"model":"%s"}}\n\n'
    assert renamer.event(start % OLD) == start % NEW
    assert renamer.event(b": keep-alive\n\n") == b": keep-alive\n\n"
