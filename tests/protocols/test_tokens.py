"""What counts as a first token, as usage, as an error and as the end, in all four APIs."""

from __future__ import annotations

import json
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.protocols.seen import NOTHING, Seen
from gateway.protocols.sse import Event, Reader
from gateway.protocols.tokens import Observer, response_id_of, usage_of
from gateway.records import Api, Usage

VECTORS = Path(__file__).parent / "vectors"
STREAMED = [Api.CHAT, Api.COMPLETIONS, Api.MESSAGES, Api.RESPONSES]


def cases() -> list[Any]:
    return [
        pytest.param(api, case, id=f"{api}: {case['name']}")
        for api in STREAMED
        for case in json.loads((VECTORS / f"{api}.json").read_text())
    ]


def line(event: dict[str, Any], **style: Any) -> bytes:
    name = f"event: {event['event']}\n" if "event" in event else ""
    data = event["data"]
    text = data if isinstance(data, str) else json.dumps(data, **style)
    return f"{name}data: {text}\n\n".encode()


def expected(event: dict[str, Any]) -> Seen:
    flags = {name: value for name, value in event.items() if name not in ("event", "data")}
    if flags.get("usage") is not None:
        flags["usage"] = Usage(**flags["usage"])
    return Seen(**flags)


@pytest.mark.parametrize(
    "style",
    [{"separators": (",", ":"), "ensure_ascii": False}, {}, {"sort_keys": True, "indent": None}],
    ids=["compact", "spaced", "sorted"],
)
@pytest.mark.parametrize(("api", "case"), cases())
def test_vectors(api: Api, case: dict[str, Any], style: dict[str, Any]) -> None:
    reader, observer = Reader(), Observer(api, case.get("echo_prompt"))
    for event in case["events"]:
        (read,) = reader.feed(line(event, **style))
        assert observer.feed(read) == expected(event), event


def first_token(api: Api, stream: bytes, echo_prompt: str | None = None) -> int | None:
    """The index of the event that the first token is timed by."""
    observer = Observer(api, echo_prompt)
    seen = [observer.feed(event) for event in Reader().feed(stream)]
    return next((index for index, one in enumerate(seen) if one.token), None)


def chat(*deltas: dict[str, Any]) -> bytes:
    return b"".join(line({"data": {"choices": [{"index": 0, "delta": d}]}}) for d in deltas)


# Reports about other gateways (facts/peers.md)


def test_litellm_25598_messages_are_timed_at_their_first_delta_not_at_their_end() -> None:
    kinds: list[dict[str, Any]] = [
        {"type": "message_start", "message": {"usage": {"input_tokens": 1, "output_tokens": 0}}},
        {"type": "content_block_start", "content_block": {"type": "text", "text": ""}},
        {"type": "content_block_delta", "delta": {"type": "text_delta", "text": "a"}},
        {"type": "content_block_delta", "delta": {"type": "text_delta", "text": "b"}},
        {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {}},
        {"type": "message_stop"},
    ]
    stream = b"".join(line({"event": kind["type"], "data": kind}) for kind in kinds)
    assert first_token(Api.MESSAGES, stream) == 2


def test_aibrix_2477_the_first_token_is_not_the_last_chunk() -> None:
    stream = chat({"role": "assistant", "content": ""}, *[{"content": c} for c in "abc"], {})
    assert first_token(Api.CHAT, stream + b"data: [DONE]\n\n") == 1


def test_aisix_869_a_role_frame_does_not_stop_the_clock_and_reasoning_does() -> None:
    stream = chat({"role": "assistant", "content": ""}, {"reasoning": "Hm"}, {"content": "x"})
    assert first_token(Api.CHAT, stream) == 1


def test_vllm_15106_a_role_frame_after_the_first_prefill_chunk_does_not_count() -> None:
    """The engine may send it, and comments, long before the prompt has been read to its end."""
    early = chat({"role": "assistant", "content": ""}) + b": keep-alive\n\n: keep-alive\n\n"
    assert first_token(Api.CHAT, early) is None
    assert first_token(Api.CHAT, early + chat({"content": "x"})) == 3


def test_response_created_is_not_the_first_token() -> None:
    announced = [
        {"type": "response.created", "response": {"id": "r"}},
        {"type": "response.in_progress", "response": {"id": "r"}},
    ]
    stream = b"".join(line({"event": kind["type"], "data": kind}) for kind in announced)
    assert first_token(Api.RESPONSES, stream) is None
    delta = {"type": "response.output_text.delta", "delta": "x"}
    assert first_token(Api.RESPONSES, stream + line({"data": delta})) == 2


def test_vercel_ai_17326_a_message_start_of_zeros_does_not_lose_the_usage() -> None:
    kinds: list[dict[str, Any]] = [
        {"type": "message_start", "message": {"usage": {"input_tokens": 0, "output_tokens": 0}}},
        {
            "type": "message_delta",
            "delta": {"stop_reason": "end_turn"},
            "usage": {"input_tokens": 12, "cache_read_input_tokens": 100, "output_tokens": 7},
        },
    ]
    observer = Observer(Api.MESSAGES)
    seen = [observer.feed(Event(b"", json.dumps(kind).encode())) for kind in kinds]
    assert seen[-1].usage == Usage(prompt=112, cached=100, completion=7)


# Streams as a whole


@given(st.data())
def test_the_first_token_does_not_depend_on_how_the_bytes_are_split(data: st.DataObject) -> None:
    api = data.draw(st.sampled_from(STREAMED))
    case = data.draw(st.sampled_from(json.loads((VECTORS / f"{api}.json").read_text())))
    stream = b"".join(map(line, case["events"]))
    cuts = sorted(data.draw(st.lists(st.integers(0, len(stream)), max_size=8)))
    edges = [0, *cuts, len(stream)]
    reader, observer = Reader(), Observer(api, case.get("echo_prompt"))
    seen = [observer.feed(event) for a, b in pairwise(edges) for event in reader.feed(stream[a:b])]
    assert seen == [expected(event) for event in case["events"]]


@pytest.mark.parametrize("api", STREAMED)
@given(data=st.binary(max_size=60))
def test_no_bytes_break_the_reading(api: Api, data: bytes) -> None:
    observer = Observer(api, "echo")
    for event in (
        Event(data, data),
        Event(data, b'{"choices":[' + data),
        Event(data, data, b"error"),
    ):
        observer.feed(event)


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                [
                    "choices",
                    "delta",
                    "content",
                    "type",
                    "usage",
                    "error",
                    "response",
                    "item",
                    "text",
                ]
            ),
            inner,
            max_size=4,
        )
    ),
    max_leaves=12,
)


@pytest.mark.parametrize("api", STREAMED)
@given(value=json_values)
def test_no_json_breaks_the_reading(api: Api, value: Any) -> None:
    data = json.dumps(value).encode()
    Observer(api).feed(Event(data, data))
    usage_of(api, data)
    response_id_of(data)


@pytest.mark.parametrize("api", STREAMED)
def test_deep_nesting_is_an_error_not_a_crash(api: Api) -> None:
    data = b'{"x":' + b"[" * 100_000
    assert Observer(api).feed(Event(data, data)).error


@pytest.mark.parametrize("api", [Api.EMBEDDINGS, Api.OTHER])
def test_apis_without_streams_say_nothing(api: Api) -> None:
    assert Observer(api).feed(Event(b"", b'{"choices":[]}')) is NOTHING


@pytest.mark.parametrize("api", STREAMED)
def test_a_comment_says_nothing(api: Api) -> None:
    (event,) = Reader().feed(b": keep-alive\n\n")
    assert Observer(api).feed(event) is NOTHING


# Unstreamed replies


@pytest.mark.parametrize(
    ("api", "usage", "counts"),
    [
        (
            Api.CHAT,
            {
                "prompt_tokens": 9,
                "completion_tokens": 3,
                "prompt_tokens_details": {"cached_tokens": 8},
            },
            Usage(9, 8, 3),
        ),
        (Api.CHAT, {"prompt_tokens": 9, "completion_tokens": 3}, Usage(9, 0, 3)),
        (Api.COMPLETIONS, {"prompt_tokens": 9, "completion_tokens": 0}, Usage(9, 0, 0)),
        (
            Api.MESSAGES,
            {
                "input_tokens": 1,
                "cache_read_input_tokens": 8,
                "cache_creation_input_tokens": 2,
                "output_tokens": 3,
            },
            Usage(11, 8, 3),
        ),
        (Api.MESSAGES, {"input_tokens": 9, "output_tokens": 3}, Usage(9, 0, 3)),
        (
            Api.RESPONSES,
            {"input_tokens": 9, "input_tokens_details": {"cached_tokens": 8}, "output_tokens": 3},
            Usage(9, 8, 3),
        ),
        (Api.EMBEDDINGS, {"prompt_tokens": 9, "total_tokens": 9}, Usage(9, 0, 0)),
        (Api.OTHER, {"total_tokens": 9}, Usage(9, 0, 0)),
        (Api.CHAT, None, None),
        (Api.CHAT, {}, None),
        (Api.MESSAGES, {}, None),
        (Api.RESPONSES, [], None),
        (Api.CHAT, {"prompt_tokens": True, "completion_tokens": -1}, None),
    ],
)
def test_usage_of_a_reply(api: Api, usage: Any, counts: Usage | None) -> None:
    body = json.dumps({"id": "x", "choices": [], "usage": usage}).encode()
    assert usage_of(api, body) == counts


def test_usage_of_what_is_not_json() -> None:
    assert usage_of(Api.CHAT, b"<html>") is None


def test_response_id() -> None:
    assert response_id_of(b'{"id":"resp_1","object":"response"}') == "resp_1"
    assert response_id_of(b'{"object":"response"}') is None
    assert response_id_of(b'{"id":7}') is None
    assert response_id_of(b"") is None
