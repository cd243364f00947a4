"""The event reader: any line ends, any split of the bytes, nothing lost."""

from __future__ import annotations

import time
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.protocols.sse import Event, Reader

PIECES = [
    b"data: a",
    b"data:b",
    b"data",
    b"data:  two spaces",
    b"event: ping",
    b"event:",
    b"id: 7",
    b"retry: 10",
    b": comment",
    b":",
    b'data: {"choices":[]}',
    "data: é😀".encode(),
    b"data: \x00\xff",
    b"unknown: field",
    b"\xef\xbb\xbf",
    b"\n",
    b"\n",
    b"\n\n",
    b"\r",
    b"\r\n",
    b"\r\n\r\n",
]
# Mixed line ends, and all of one kind, since these are read in another way.
mixed = st.lists(st.sampled_from(PIECES), max_size=25).map(b"".join)
uniform = st.builds(
    lambda pieces, end: end.join(piece for piece in pieces if b"\r" not in piece).replace(
        b"\n", end
    ),
    st.lists(st.sampled_from([*PIECES, b"", b""]), max_size=25),
    st.sampled_from([b"\n", b"\r\n", b"\r"]),
)
streams = mixed | uniform


@st.composite
def split_streams(draw: st.DrawFn) -> tuple[bytes, list[bytes]]:
    data = draw(streams)
    cuts = sorted(draw(st.lists(st.integers(0, len(data)), max_size=12)))
    edges = [0, *cuts, len(data)]
    return data, [data[a:b] for a, b in pairwise(edges)]


def read(chunks: list[bytes]) -> tuple[list[Event], bytes]:
    reader = Reader()
    events = [event for chunk in chunks for event in reader.feed(chunk)]
    return events, reader.pending


def as_the_standard_says(data: bytes) -> list[tuple[bytes, bytes]]:
    """(event, data) of every block with a data line, by the algorithm of the HTML standard."""
    text = data.removeprefix(b"\xef\xbb\xbf").replace(b"\r\n", b"\n").replace(b"\r", b"\n")
    blocks: list[tuple[bytes, bytes]] = []
    lines: list[bytes] = []
    name = b""
    for line in text.split(b"\n")[:-1]:
        if not line:
            if lines:
                blocks.append((name, b"\n".join(lines)))
            lines, name = [], b""
            continue
        field, _, value = line.partition(b":")
        if field == b"data":
            lines.append(value.removeprefix(b" "))
        elif field == b"event":
            name = value.removeprefix(b" ")
    return blocks


@given(split_streams())
def test_any_split_gives_the_same_events(case: tuple[bytes, list[bytes]]) -> None:
    data, chunks = case
    whole = read([data])
    assert read(chunks) == whole
    assert read([bytes([byte]) for byte in data]) == whole


@given(split_streams())
def test_no_byte_is_lost_or_invented(case: tuple[bytes, list[bytes]]) -> None:
    data, chunks = case
    events, pending = read(chunks)
    assert b"".join(event.raw for event in events) + pending == data


@given(split_streams())
def test_close_returns_the_rest(case: tuple[bytes, list[bytes]]) -> None:
    data, chunks = case
    reader = Reader()
    events = [event for chunk in chunks for event in reader.feed(chunk)]
    rest = reader.close()
    assert b"".join(e.raw for e in events) + (rest.raw if rest else b"") == data
    assert reader.pending == b"" and reader.close() is None


@given(streams)
def test_events_are_those_of_the_standard(data: bytes) -> None:
    data += b"\n\n\n"  # so that nothing is pending, whatever `data` ends with
    events, pending = read([data])
    assert pending == b""
    expected = as_the_standard_says(data)
    found = [(event.event, event.data) for event in events if _has_data(event, event is events[0])]
    assert found == expected


def _has_data(event: Event, first: bool) -> bool:
    raw = event.raw.removeprefix(b"\xef\xbb\xbf") if first else event.raw
    lines = raw.replace(b"\r", b"\n").split(b"\n")
    return any(line.partition(b":")[0] == b"data" for line in lines)


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (b"data: x\n\n", [(b"x", b"")]),
        (b"data:x\r\n\r\n", [(b"x", b"")]),
        (b"data: x\r\ry", [(b"x", b"")]),
        (b"event: e\ndata: x\n\n", [(b"x", b"e")]),
        (b"data: x\nevent: e\n\n", [(b"x", b"e")]),
        (b"data: a\ndata: b\n\n", [(b"a\nb", b"")]),
        (b"data: a\r\ndata:\r\ndata: b\r\n\r\n", [(b"a\n\nb", b"")]),
        (b"data:  x\n\n", [(b" x", b"")]),
        (b": keep-alive\n\n", [(b"", b"")]),
        (b"\xef\xbb\xbfdata: x\n\n", [(b"x", b"")]),
        (b"data: x\n\n\n", [(b"x", b""), (b"", b"")]),
        (b"id: 1\nretry: 5\nother: z\ndata: x\n\n", [(b"x", b"")]),
    ],
)
def test_forms(data: bytes, expected: list[tuple[bytes, bytes]]) -> None:
    events, _ = read([data])
    assert [(event.data, event.event) for event in events] == expected


def test_an_event_comes_with_its_last_byte_when_lines_end_in_lf_or_crlf() -> None:
    """A first token must not wait for the event after it."""
    for stream in (b"data: x\n\n", b"data: x\r\n\r\n"):
        reader = Reader()
        assert reader.feed(stream[:-1]) == []
        assert reader.feed(stream[-1:]) == [Event(stream, b"x")]


def test_a_byte_order_mark_counts_only_at_the_start() -> None:
    events, _ = read([b"\xef\xbb", b"\xbfdata: x\n\n\xef\xbb\xbfdata: y\n\n"])
    assert [event.data for event in events] == [b"x", b""]


def test_an_unended_event_is_handed_over_at_close() -> None:
    reader = Reader()
    assert reader.feed(b"data: a\n\ndata: [DONE]") == [Event(b"data: a\n\n", b"a")]
    assert reader.close() == Event(b"data: [DONE]", b"[DONE]")


def test_an_endless_event_is_refused() -> None:
    reader = Reader(max_event_bytes=100)
    reader.feed(b"data: " + b"x" * 90)
    with pytest.raises(ValueError, match="longer than 100 bytes"):
        reader.feed(b"x" * 20)


def test_a_long_event_in_small_reads_costs_its_length_not_its_square() -> None:
    """4 MiB in reads of 1 KiB: joining at every read would copy 8 GiB, which takes seconds."""
    begun = time.process_time()
    reader = Reader()
    chunk = b"x" * 1024
    assert reader.feed(b"data: ") == []
    for _ in range(4096):
        assert reader.feed(chunk) == []
    (event,) = reader.feed(b"\n\n")
    assert len(event.data) == 4096 * 1024
    assert time.process_time() - begun < 0.5
