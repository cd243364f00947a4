"""The stream's reading: the same whether events are decoded or recognised, and however split."""

from __future__ import annotations

import json
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.exchange.call import Call
from gateway.exchange.draft import Draft
from gateway.exchange.form import Form
from gateway.exchange.stream import Stream
from gateway.records import Api, Timeline

texts = st.lists(
    st.one_of(
        st.text(max_size=6),
        st.sampled_from(["", " token", '"', "\\", 'a"},"x":1', "\n\n", '\\"', "é", "{}"]),
    ),
    max_size=12,
)


def call(api: Api = Api.CHAT, client: bytes = b"up", echo: str | None = None) -> Call:
    nothing: Any = None
    return Call(
        method=b"POST", forms=nothing, api=api, headers=b"", key=nothing, route=nothing,
        arm=nothing, session=0, stream=True, forced=False, rename=(b"up", client),
        echo_prompt=echo,
    )  # fmt: skip


def draft() -> Draft:
    return Draft(id="r", at=0.0, api=Api.CHAT, path="/", timeline=Timeline(0.0), stream=True)


def reading(asked: Call, record: Draft | None = None) -> Stream:
    return Stream(asked, Form(path=b"/", api=asked.api, body=b""), record or draft())


def chat(text: str, **more: Any) -> bytes:
    choice = {"index": 0, "delta": {"content": text}, "finish_reason": None} | more
    data = {"id": "c", "model": "up", "choices": [choice]}
    return b"data: " + json.dumps(data, separators=(",", ":")).encode() + b"\n\n"


def message(text: str) -> bytes:
    delta = {"type": "text_delta", "text": text}
    data = {"type": "content_block_delta", "index": 0, "delta": delta}
    return b"event: content_block_delta\ndata: " + json.dumps(data).encode() + b"\n\n"


def fed(stream: Stream, data: bytes, cuts: list[int]) -> tuple[bytes, int]:
    edges = sorted({0, len(data), *(cut % (len(data) + 1) for cut in cuts)})
    out, count = b"", 0
    for start, end in pairwise(edges):
        piece, events = stream.feed(data[start:end], float(end))
        out += piece
        count += events
    return out, count


@given(texts, st.lists(st.integers(0, 5000), max_size=8), st.sampled_from([chat, message]))
def test_recognising_alike_events_changes_nothing(
    parts: list[str], cuts: list[int], event: Any
) -> None:
    api = Api.CHAT if event is chat else Api.MESSAGES
    data = b"".join(event(text) for text in parts)
    quick, slow = reading(call(api)), reading(call(api))
    slow._alike.hopeful = False
    assert fed(quick, data, cuts) == fed(slow, data, []) == (data, len(parts))
    assert quick.tokens == slow.tokens == sum(bool(text) for text in parts)
    assert (quick.failed, quick.usage) == (slow.failed, slow.usage) == (None, None)


@given(texts, st.lists(st.integers(0, 5000), max_size=8))
def test_alike_events_are_renamed_like_others(parts: list[str], cuts: list[int]) -> None:
    data = b"".join(chat(text) for text in parts)
    out, _ = fed(reading(call(client=b"mine")), data, cuts)
    assert out == data.replace(b'"model":"up"', b'"model":"mine"')


def test_a_text_that_names_the_model_or_looks_like_a_frame_stays() -> None:
    parts = ["a", "b", '"model":"up"', 'data: {"model":"up"}', "c", "model:up"]
    data = b"".join(chat(text) for text in parts)
    out, count = reading(call(client=b"mine")).feed(data, 1.0)
    told = [json.loads(line[6:]) for line in out.decode().split("\n\n") if line]
    assert [one["choices"][0]["delta"]["content"] for one in told] == parts
    assert {one["model"] for one in told} == {"mine"} and count == len(parts)


@pytest.mark.parametrize(
    "odd",
    [
        chat("x", finish_reason="stop"),
        b'data: {"error":{"message":"no","code":500}}\n\n',
        b"data: [DONE]\n\n",
        chat(""),
    ],
    ids=["finish", "error", "done", "empty"],
)
def test_an_event_of_another_kind_within_a_run_is_noticed(odd: bytes) -> None:
    stream = reading(call())
    stream.feed(chat("a") * 5 + odd + chat("b") * 3, 1.0)
    # Nothing that follows an error is the client's.
    assert stream.tokens == (5 if b"error" in odd else 8 + (b'"x"' in odd))
    assert stream.finished is (b"stop" in odd)
    assert (stream.failed is not None) is (b"error" in odd)
    assert stream.terminal is (b"DONE" in odd)


@pytest.mark.parametrize("block", [b": ping\n\n", b"\n", b"retry: 5\n\n"])
def test_a_block_without_data_passes_and_is_no_event(block: bytes) -> None:
    stream = reading(call())
    assert stream.feed(block, 1.0) == (block, 0)
    assert stream.feed(block + chat("a") + block, 1.0) == (block + chat("a") + block, 1)


def test_an_echoed_prompt_is_no_token_however_alike() -> None:
    def frame(text: str) -> bytes:
        data = {"id": "c", "model": "up", "choices": [{"index": 0, "text": text}]}
        return b"data: " + json.dumps(data).encode() + b"\n\n"

    stream = reading(call(Api.COMPLETIONS, echo="abcd"))
    stream.feed(frame("ab") + frame("cd") + frame("ef"), 1.0)
    assert stream.tokens == 1


def test_gaps_are_between_reads_that_carry_tokens() -> None:
    record = draft()
    stream = reading(call(), record)
    for now, data in ((1.0, chat("")), (2.0, chat("a") * 3), (2.5, chat("")), (4.0, chat("b"))):
        stream.feed(data, now)
    assert (record.timeline.first_token, record.timeline.last_token) == (2.0, 4.0)
    assert list(record.gaps) == [2.0]
