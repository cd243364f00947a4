"""What holds for every Messages request, well made or not."""

from __future__ import annotations

import copy
import json
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from gateway.errors import BadRequest
from gateway.protocols.translate import tokenize
from gateway.protocols.translate.messages import translate
from tests.support.chat_answers import JSON, OBJECTS

Json = dict[str, Any]

_WORDS = st.text(st.sampled_from("ab \n"), max_size=5)
_TEXTS = st.fixed_dictionaries({"type": st.just("text"), "text": _WORDS})
_IMAGES = st.just(
    {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "QQ=="}}
)
_DOCUMENTS = st.builds(
    lambda data: {"type": "document", "source": {"type": "text", "data": data}}, _WORDS
)
_SAID = _TEXTS | _IMAGES | _DOCUMENTS
_RESULTS = st.fixed_dictionaries(
    {
        "type": st.just("tool_result"),
        "tool_use_id": st.sampled_from(["c1", "c2"]),
        "content": st.none() | _WORDS | st.lists(_SAID, max_size=2),
        "is_error": st.booleans(),
    }
)
_CALLS = st.fixed_dictionaries(
    {"type": st.just("tool_use"), "id": st.just("c1"), "name": st.just("f"), "input": OBJECTS}
)
_THOUGHTS = st.fixed_dictionaries({"type": st.just("thinking"), "thinking": _WORDS})
_ASKED = st.one_of(
    st.fixed_dictionaries(
        {"role": st.just("user"), "content": _WORDS | st.lists(_SAID | _RESULTS, max_size=3)}
    ),
    st.fixed_dictionaries(
        {"role": st.just("system"), "content": _WORDS | st.lists(_TEXTS, max_size=2)}
    ),
)
_ANSWERED = st.fixed_dictionaries(
    {
        "role": st.just("assistant"),
        "content": _WORDS | st.lists(_TEXTS | _CALLS | _THOUGHTS, max_size=3),
    }
)
_TURNS = st.lists(st.tuples(st.lists(_ASKED, min_size=1, max_size=3), _ANSWERED), max_size=4)

_SAMPLE: Json = {
    "model": "backend",
    "max_tokens": 9,
    "stream": True,
    "temperature": 1,
    "top_k": 3,
    "stop_sequences": ["END"],
    "system": [{"type": "text", "text": "be"}],
    "thinking": {"type": "enabled", "budget_tokens": 2048},
    "output_config": {"effort": "high", "format": {"type": "json_schema", "schema": {}}},
    "tool_choice": {"type": "tool", "name": "f"},
    "tools": [{"name": "f", "description": "d", "input_schema": {"type": "object"}}],
    "messages": [
        {"role": "user", "content": "hi"},
        {
            "role": "assistant",
            "content": [
                {"type": "thinking", "thinking": "hm", "signature": ""},
                {"type": "tool_use", "id": "c1", "name": "f", "input": {"a": 1}},
                {"type": "server_tool_use", "id": "s1", "name": "web_search", "input": {"q": 1}},
            ],
        },
        {
            "role": "user",
            "content": [
                {
                    "type": "tool_result",
                    "tool_use_id": "c1",
                    "content": [{"type": "text", "text": "x"}],
                },
                {"type": "image", "source": {"type": "url", "url": "u"}},
                {"type": "document", "source": {"type": "content", "content": []}},
            ],
        },
    ],
}


def chat(messages: list[Json]) -> list[Json]:
    body = json.dumps({"model": "b", "system": "be", "messages": messages}).encode()
    return list(json.loads(translate(body, model="m", request_id="r").body)["messages"])


@given(_TURNS, _ASKED)
def test_a_conversation_that_grows_keeps_its_beginning(
    turns: list[tuple[list[Json], Json]], last: Json
) -> None:
    messages: list[Json] = []
    earlier: list[Json] = []
    for asked, answered in [*turns, ([last], {})]:
        messages += asked
        now = chat(messages)
        assert now[: len(earlier)] == earlier
        earlier = now
        messages.append(answered)


@given(_TURNS)
def test_the_same_request_is_always_the_same_chat(turns: Any) -> None:
    messages = [one for asked, answered in turns for one in (*asked, answered)]
    body = json.dumps({"model": "b", "messages": messages or [{"role": "user"}]}).encode()
    first, second = (translate(body, model="m", request_id=f"r{i}").body for i in range(2))
    assert first == second


def _places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    inner = value.items() if isinstance(value, dict) else enumerate(value)
    found = [path] if path else []
    for key, one in inner:
        found += _places(one, (*path, key)) if isinstance(one, dict | list) else [(*path, key)]
    return found


_PLACES = _places(_SAMPLE)


def _check(body: bytes) -> None:
    """It is translated into JSON, or refused, and counting agrees."""
    try:
        found = json.loads(translate(body, model="m", request_id="r").body)
    except BadRequest as fault:
        assert fault.message
        return
    assert found["messages"] and all("role" in message for message in found["messages"])
    json.loads(tokenize.to_tokenize(body))
    assert json.loads(tokenize.estimate(body))["input_tokens"] > 0


@settings(max_examples=500)
@given(st.lists(st.tuples(st.sampled_from(_PLACES), JSON | st.just(...)), min_size=1, max_size=3))
def test_a_request_with_anything_in_the_wrong_place_is_translated_or_refused(
    changes: list[tuple[tuple[Any, ...], Any]],
) -> None:
    request = copy.deepcopy(_SAMPLE)
    for path, value in changes:
        at: Any = request
        for key in path[:-1]:
            at = at[key] if isinstance(at, list | dict) and _has(at, key) else None
        if isinstance(at, dict | list) and _has(at, path[-1]):
            if value is ...:
                del at[path[-1]]
            else:
                at[path[-1]] = value
    _check(json.dumps(request).encode())


def _has(holder: Any, key: Any) -> bool:
    if isinstance(holder, dict):
        return key in holder
    return isinstance(key, int) and key < len(holder)


@given(JSON)
def test_any_json_is_translated_or_refused(value: Any) -> None:
    _check(json.dumps(value).encode())


@given(st.binary(max_size=40), st.integers(0, 800), st.integers(0, 40))
def test_any_bytes_are_translated_or_refused(junk: bytes, place: int, cut: int) -> None:
    body = json.dumps(_SAMPLE).encode()
    _check(body[:place] + junk + body[place + cut :])
