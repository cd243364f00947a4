"""Editing a body in place: against `json`, and byte for byte."""

from __future__ import annotations

import json
import timeit
from dataclasses import dataclass
from typing import Any

import msgspec
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from gateway.protocols.fields import parse
from gateway.protocols.splice import set_fields

NAMES = [
    "model",
    "stream",
    "stream_options",
    "priority",
    "a",
    "",
    "é",
    'qu"ote',
    "back\\slash",
    "\n",
]
values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(10**6), 10**6)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=8)
    | st.sampled_from(['"model":"x"', "{", "}", "]", ",", '\\"model\\":', "model"]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(NAMES) | st.text(max_size=3), inner, max_size=3)
    ),
    max_leaves=10,
)
gaps = st.sampled_from(["", "", " ", "\n  ", "\t", "\r\n"])
changes = st.dictionaries(
    st.sampled_from(NAMES),
    st.none() | values.map(lambda value: json.dumps(value).encode()),
    max_size=4,
)


@dataclass
class Written:
    """A field as it was spelled: `before` its value, the value, `after` it."""

    name: str
    before: str
    value: str
    after: str

    def text(self, value: str | None = None) -> str:
        return self.before + (self.value if value is None else value) + self.after


@st.composite
def written(draw: st.DrawFn, names: st.SearchStrategy[str]) -> Written:
    name, value = draw(names), draw(values)
    key = json.dumps(name, ensure_ascii=draw(st.booleans()))
    if draw(st.booleans()):
        key = '"' + "".join(f"\\u{ord(c):04x}" for c in name) + '"'
    before = draw(gaps) + key + draw(gaps) + ":" + draw(gaps)
    style = draw(st.sampled_from([None, (",", ":"), (" , ", " : ")]))
    text = json.dumps(value, ensure_ascii=draw(st.booleans()), separators=style)
    return Written(name, before, text, draw(gaps))


@st.composite
def objects(draw: st.DrawFn, unique: bool) -> tuple[str, list[Written], str]:
    """(before the fields, the fields, after them)"""
    if unique:
        names = draw(st.lists(st.sampled_from(NAMES), unique=True, min_size=1, max_size=6))
        fields = [draw(written(st.just(name))) for name in names]
    else:
        fields = draw(st.lists(written(st.sampled_from(NAMES)), max_size=8))
    return draw(gaps) + "{", fields, "}" + draw(gaps)


def joined(opening: str, fields: list[str], closing: str) -> bytes:
    return (opening + ",".join(fields) + closing).encode()


@given(objects(unique=True), changes)
def test_everything_else_stays_byte_for_byte(
    body: tuple[str, list[Written], str], changed: dict[str, bytes | None]
) -> None:
    opening, fields, closing = body
    kept = []
    for field in fields:
        if field.name not in changed:
            kept.append(field.text())
        elif (value := changed[field.name]) is not None:
            kept.append(field.text(value.decode()))
    present = {field.name for field in fields}
    for name, value in changed.items():
        if name not in present and value is not None:
            spelled = msgspec.json.encode(name).decode()
            kept.append(f"{spelled}:{value.decode()}")
    before = joined(opening, [field.text() for field in fields], closing)
    assert set_fields(before, changed) == joined(opening, kept, closing)
    assert set_fields(before, changed, parse(before)) == joined(opening, kept, closing)


@given(objects(unique=False), changes)
@example(("{", [Written("a", '"a":', "12", ""), Written("a", '"a":', "1", "")], "}"), {"a": b"5"})
@example(("{", [Written("a", '"a":', "1", ""), Written("a", '"a":', "1", "")], "}"), {"b": b"5"})
@example(
    (
        "{",
        [
            Written("a", '"a":', '"xxxxx\\",\\"b\\":1}"', ""),
            Written("b", '"b":', "1", ""),
            Written("a", '"a":', '"xxxxx"', ""),
        ],
        "}",
    ),
    {"b": b"2"},
)
def test_with_repeated_names_it_says_what_json_reads(
    body: tuple[str, list[Written], str], changed: dict[str, bytes | None]
) -> None:
    opening, fields, closing = body
    before = joined(opening, [field.text() for field in fields], closing)
    expected = json.loads(before)
    for name, value in changed.items():
        expected.pop(name, None)
        if value is not None:
            expected[name] = json.loads(value)
    after = set_fields(before, changed)
    assert json.loads(after) == expected
    if not changed.keys().isdisjoint(json.loads(before)):
        names = json.loads(after, object_pairs_hook=lambda pairs: [pair[0] for pair in pairs])
        assert len(names) == len(set(names))


@pytest.mark.parametrize(
    ("body", "changed", "expected"),
    [
        (b'{"model":"a"}', {"model": b'"b"'}, b'{"model":"b"}'),
        (b'{ "model" : "a" , "x" : 1 }', {"model": b'"b"'}, b'{ "model" : "b" , "x" : 1 }'),
        (b'{"mod\\u0065l":"a"}', {"model": b'"b"'}, b'{"mod\\u0065l":"b"}'),
        (
            b'{"tools":[{"model":"a"}],"model":"a"}',
            {"model": b'"b"'},
            b'{"tools":[{"model":"a"}],"model":"b"}',
        ),
        (b'{"x":"\\"model\\":1","model":"a"}', {"model": b"1"}, b'{"x":"\\"model\\":1","model":1}'),
        (b'{"a":1}', {"b": b"2"}, b'{"a":1,"b":2}'),
        (b'{"a":1\n}\n', {"b": b"2"}, b'{"a":1\n,"b":2}\n'),
        (b"{}", {"b": b"2"}, b'{"b":2}'),
        (b" { } ", {}, b" { } "),
        (b'{"a":1,"b":2,"c":3}', {"a": None}, b'{"b":2,"c":3}'),
        (b'{"a":1,"b":2,"c":3}', {"b": None}, b'{"a":1,"c":3}'),
        (b'{"a":1,"b":2,"c":3}', {"c": None}, b'{"a":1,"b":2}'),
        (b'{"a":1}', {"a": None}, b"{}"),
        (b'{"a":1}', {"a": None, "b": b"2"}, b'{"b":2}'),
        (b'{"a":1}', {"b": None}, b'{"a":1}'),
        (b'{"a":1,"a":2,"b":3}', {}, b'{"a":1,"a":2,"b":3}'),
        (b'{"a":1,"a":2,"b":3}', {"a": b"4"}, b'{"a":4,"b":3}'),
        (b'{"a":1,"a":2,"b":3}', {"b": b"4"}, b'{"a":2,"b":4}'),
        (b'{"prio":1,"priority":-5,"pr\\u0069ority":-6}', {"priority": None}, b'{"prio":1}'),
    ],
)
def test_cases(body: bytes, changed: dict[str, bytes | None], expected: bytes) -> None:
    assert set_fields(body, changed) == expected


@pytest.mark.parametrize("body", [b"", b"[1]", b'{"a":1', b'{"a":1} x'])
def test_what_is_no_object_is_refused(body: bytes) -> None:
    with pytest.raises(msgspec.DecodeError):
        set_fields(body, {"a": b"1"})


def large(model: Any = "m") -> bytes:
    turn = {"role": "user", "content": 'Look at `a.py`,\n"fix" it and say {"model": "x"}.\n' * 8}
    tool = {"type": "function", "function": {"name": "f", "parameters": {"model": {"model": 1}}}}
    body = {"model": model, "messages": [turn] * 228, "tools": [tool] * 40, "stream": True}
    return json.dumps(body).encode()


def test_a_large_body_is_not_looked_through_twice() -> None:
    """The walk costs a fraction of a parse, or sharing the fields would be for nothing."""
    body = large()
    assert 100_000 < len(body) < 120_000
    fields, changed = parse(body), {"model": b'"n"', "stream_options": b"{}"}
    parsing = min(timeit.repeat(lambda: parse(body), number=50, repeat=5))
    walking = min(timeit.repeat(lambda: set_fields(body, changed, fields), number=50, repeat=5))
    assert walking < parsing
