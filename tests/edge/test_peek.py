"""What is read of a body, and what is refused, by which words."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.edge.peek import ENGINE_FIELDS, Peek, peek
from gateway.errors import BadRequest
from gateway.records import Api

MINIMAL: dict[Api, dict[str, Any]] = {
    Api.CHAT: {"messages": [{"role": "user", "content": "hi"}]},
    Api.COMPLETIONS: {"prompt": "hi"},
    Api.MESSAGES: {"messages": [{"role": "user", "content": "hi"}], "max_tokens": 9},
    Api.RESPONSES: {"input": "hi"},
    Api.EMBEDDINGS: {"input": ["hi"]},
    Api.OTHER: {"query": "hi"},
}


def read(api: Api = Api.CHAT, **fields: Any) -> Peek:
    return peek(json.dumps({"model": "m", **MINIMAL[api], **fields}).encode(), api)


def refused(body: bytes, api: Api = Api.CHAT) -> BadRequest:
    with pytest.raises(BadRequest) as caught:
        peek(body, api)
    return caught.value


@pytest.mark.parametrize("api", Api)
def test_a_minimal_request(api: Api) -> None:
    seen = read(api)
    assert (seen.model, seen.stream, seen.include_usage) == ("m", False, False)
    assert (seen.metadata_user_id, seen.prompt_cache_key) == (None, None)
    assert (seen.previous_response_id, seen.echo_prompt) == (None, None)
    assert seen.engine_fields == frozenset()
    assert seen.caps_output is (api is Api.MESSAGES)


def test_everything_at_once() -> None:
    seen = read(
        stream=True,
        stream_options={"include_usage": True},
        max_completion_tokens=9,
        metadata={"user_id": '{"session_id":"s"}', "other": 1},
        prompt_cache_key="k",
        previous_response_id="resp_1",
        priority=0,
        cache_salt=None,
    )
    assert seen.stream and seen.include_usage and seen.caps_output
    assert seen.metadata_user_id == '{"session_id":"s"}'
    assert (seen.prompt_cache_key, seen.previous_response_id) == ("k", "resp_1")
    assert seen.engine_fields == {"priority", "cache_salt"}


@pytest.mark.parametrize("name", sorted(ENGINE_FIELDS))
def test_engine_fields_are_seen_however_they_are_spelled(name: str) -> None:
    spelled = "".join(f"\\u{ord(c):04X}" for c in name)
    body = f'{{"model":"m","messages":[],"{spelled}":1}}'.encode()
    assert peek(body, Api.CHAT).engine_fields == {name}


@pytest.mark.parametrize(
    ("options", "asked", "completed"),
    [
        (None, False, {"include_usage": True}),
        ({}, False, {"include_usage": True}),
        ({"include_usage": False}, False, {"include_usage": True}),
        ({"include_usage": None}, False, {"include_usage": True}),
        ({"include_usage": True}, True, {"include_usage": True}),
        (
            {"continuous_usage_stats": True},
            False,
            {"continuous_usage_stats": True, "include_usage": True},
        ),
    ],
)
def test_usage_is_asked_for_beside_what_the_client_asked(
    options: Any, asked: bool, completed: dict[str, bool]
) -> None:
    seen = read(stream=True, stream_options=options)
    assert seen.include_usage is asked
    assert json.loads(seen.stream_options_with_usage()) == completed


@pytest.mark.parametrize(
    ("api", "fields", "capped"),
    [
        (Api.CHAT, {}, False),
        (Api.CHAT, {"max_tokens": None}, False),
        (Api.CHAT, {"max_tokens": 5}, True),
        (Api.CHAT, {"max_completion_tokens": 5}, True),
        (Api.RESPONSES, {"max_output_tokens": 5}, True),
        (Api.RESPONSES, {}, False),
    ],
)
def test_whether_output_is_capped(api: Api, fields: dict[str, Any], capped: bool) -> None:
    assert read(api, **fields).caps_output is capped


@pytest.mark.parametrize(
    ("api", "fields", "echoed"),
    [
        (Api.COMPLETIONS, {"echo": True, "prompt": "The sky"}, "The sky"),
        (Api.COMPLETIONS, {"echo": False, "prompt": "The sky"}, None),
        (Api.COMPLETIONS, {"prompt": "The sky"}, None),
        (Api.COMPLETIONS, {"echo": True, "prompt": ""}, None),
        (Api.COMPLETIONS, {"echo": True, "prompt": ["a", "long", "of"]}, "long"),
        (Api.COMPLETIONS, {"echo": True, "prompt": [1, 2, 3]}, None),
        (Api.COMPLETIONS, {"echo": True, "prompt": [[1], [2]]}, None),
        (Api.COMPLETIONS, {"echo": True, "prompt": "x", "return_token_ids": True}, None),
        (Api.CHAT, {"echo": True}, None),
        (
            Api.CHAT,
            {"echo": True, "messages": [{"role": "assistant", "content": "Once"}]},
            "Once",
        ),
        (Api.CHAT, {"echo": True, "add_generation_prompt": False}, "hi"),
        (Api.CHAT, {"echo": True, "messages": []}, None),
        (Api.MESSAGES, {"echo": True}, None),
    ],
)
def test_what_an_answer_repeats(api: Api, fields: dict[str, Any], echoed: str | None) -> None:
    assert read(api, **fields).echo_prompt == echoed


@pytest.mark.parametrize(
    ("body", "words"),
    [
        (b"", "is empty"),
        (b"  \n", "is empty"),
        (b"{", "not valid JSON"),
        (b'{"model":"m",}', "trailing comma in object (byte 13)"),
        (b"{'model':1}", "not valid JSON"),
        (b'{"model":"m","x":tru}', "invalid character (byte 1"),
        (b'{"model":"m","x":NaN}', "byte 17"),
        (b'{"model":"m"} {}', "trailing characters"),
        (b"[]", "must be a JSON object"),
        (b'"model"', "must be a JSON object"),
        (b"null", "must be a JSON object"),
        (b'{"model":"m","x":"\xff"}', "not valid UTF-8 at byte 18"),
        (b'\xff\xfe{\x00"\x00', "not valid UTF-8 at byte 0"),
        (b'{"model":"m","messages":["cut \\ud83d"]}', "half of a surrogate pair at byte 30"),
        (b'{"model":"m","messages":["cut \\ud83d off"]}', "half of a surrogate pair at byte 30"),
        (b'{"model":"m","messages":["cut \\ude00 off"]}', "half of a surrogate pair at byte 30"),
        (b'{"model":"m","x":' + b"[" * 200_000, "nested too deeply"),
        (b'{"model":"m","x":' + b'{"a":' * 200_000, "nested too deeply"),
    ],
)
def test_what_is_no_json_object(body: bytes, words: str) -> None:
    error = refused(body)
    assert words in error.message and error.status == 400 and error.param is None


@pytest.mark.parametrize(
    ("api", "fields", "param"),
    [
        (Api.CHAT, {"model": None}, "model"),
        (Api.CHAT, {"model": ""}, "model"),
        (Api.CHAT, {"model": 7}, "model"),
        (Api.CHAT, {"model": ["m"]}, "model"),
        (Api.CHAT, {"stream": "yes"}, "stream"),
        (Api.CHAT, {"stream": 1}, "stream"),
        (Api.CHAT, {"stream_options": True}, "stream_options"),
        (Api.CHAT, {"messages": "hi"}, "messages"),
        (Api.CHAT, {"messages": {}}, "messages"),
        (Api.CHAT, {"messages": None}, "messages"),
        (Api.MESSAGES, {"messages": 7}, "messages"),
        (Api.COMPLETIONS, {"prompt": 7}, "prompt"),
        (Api.COMPLETIONS, {"prompt": {}}, "prompt"),
        (Api.RESPONSES, {"input": True}, "input"),
        (Api.EMBEDDINGS, {"input": {"text": "x"}}, "input"),
    ],
)
def test_a_field_of_a_wrong_type_is_named(api: Api, fields: dict[str, Any], param: str) -> None:
    with pytest.raises(BadRequest, match=f"`{param}`") as caught:
        read(api, **fields)
    assert caught.value.param == param


@pytest.mark.parametrize("api", [Api.CHAT, Api.MESSAGES])
def test_missing_fields_are_named(api: Api) -> None:
    assert refused(b'{"messages":[]}', api).param == "model"
    assert refused(b'{"model":"m"}', api).param == "messages"


def test_the_last_of_a_repeated_name_counts_whatever_the_others_are() -> None:
    seen = peek(
        b'{"model":7,"model":"m","messages":5,"messages":[],"stream":5,"stream":true}', Api.CHAT
    )
    assert (seen.model, seen.stream) == ("m", True)
    assert refused(b'{"messages":[],"model":"m","model":7}').param == "model"


def test_names_deeper_down_are_not_the_requests_own() -> None:
    body = (
        b'{"x":{"model":"no","stream":true,"priority":1},"model":"m","messages":[{"model":"no"}]}'
    )
    seen = peek(body, Api.CHAT)
    assert (seen.model, seen.stream, seen.engine_fields) == ("m", False, frozenset())


# Any JSON, and nearly any


keys = st.sampled_from(["model", "stream", "messages", "priority", "metadata", "é"]) | st.text(
    max_size=4
)
values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=6),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(keys, inner, max_size=3),
    max_leaves=8,
)


@st.composite
def spelled_objects(draw: st.DrawFn) -> bytes:
    """An object with repeated names, names spelled by escapes, and white space."""
    pairs = draw(st.lists(st.tuples(keys, values), max_size=6))
    pairs.append(("model", draw(st.text(max_size=5) | st.integers())))
    pairs.append(("messages", draw(st.lists(values, max_size=2))))
    fields = []
    for name, value in draw(st.permutations(pairs)):
        key = json.dumps(name, ensure_ascii=draw(st.booleans()))
        if draw(st.booleans()):
            key = '"' + "".join(_escaped(character) for character in name) + '"'
        text = json.dumps(
            value, ensure_ascii=draw(st.booleans()), indent=draw(st.none() | st.just(1))
        )
        fields.append(f"{key}{draw(st.sampled_from(['', ' ']))}:{text}")
    return ("{" + ",\n".join(fields) + "}").encode()


def _escaped(character: str) -> str:
    units = character.encode("utf-16-be")
    return "".join(f"\\u{units[i]:02x}{units[i + 1]:02x}" for i in range(0, len(units), 2))


def agrees_with_json(body: bytes, api: Api) -> None:
    try:
        said: Any = json.loads(body.decode(), parse_constant=_not_json)
    except ValueError:
        said = None
    try:
        seen = peek(body, api)
    except BadRequest:
        assert (
            not isinstance(said, dict)
            or not isinstance(said.get("model"), str)
            or not said["model"]
            or not isinstance(said.get("messages"), list)
            or not isinstance(said.get("stream"), bool | None)
            or not isinstance(said.get("stream_options"), dict | None)
            or b"\\u" in body  # half a surrogate pair, which `json` lets pass
        )
        return
    assert seen.model == said["model"]
    assert seen.stream == bool(said.get("stream"))
    assert seen.engine_fields == ENGINE_FIELDS & said.keys()
    metadata = said.get("metadata")
    user = metadata.get("user_id") if isinstance(metadata, dict) else None
    assert seen.metadata_user_id == (user if isinstance(user, str) and user else None)


def _not_json(constant: str) -> None:
    raise ValueError(constant)


@given(spelled_objects())
def test_it_reads_what_json_reads(body: bytes) -> None:
    agrees_with_json(body, Api.CHAT)


@given(spelled_objects(), st.data())
def test_it_refuses_what_json_refuses(body: bytes, data: st.DataObject) -> None:
    """A byte changed, dropped or put in somewhere."""
    at = data.draw(st.integers(0, len(body) - 1))
    new = data.draw(
        st.sampled_from([b"", b'"', b"\\", b"{", b"}", b"[", b",", b":", b"0", b"\xff"])
    )
    agrees_with_json(body[:at] + new + body[at + data.draw(st.integers(0, 1)) :], Api.CHAT)


@given(st.binary(max_size=40))
def test_any_bytes_are_read_or_refused(body: bytes) -> None:
    agrees_with_json(body, Api.CHAT)
