"""The text of a JSON object in pieces."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jiter import from_json

from gateway.protocols.translate.partial_json import ObjectText
from tests.support.chat_answers import OBJECTS, cut


@given(
    OBJECTS, st.booleans(), st.sampled_from([None, 1]), st.lists(st.integers(0, 300), max_size=9)
)
def test_an_object_passes_whole_however_it_is_cut(
    value: object, ascii_only: bool, indent: int | None, places: list[int]
) -> None:
    text = json.dumps(value, ensure_ascii=ascii_only, indent=indent)
    one = ObjectText()
    pieces = cut(text, places)
    for piece in pieces[:-1]:
        assert one.feed(piece) == piece and not one.complete
    assert one.feed(pieces[-1]) == pieces[-1] and one.complete
    assert one.feed(" \n") == " \n" and one.feed("{") == "" and one.complete


@pytest.mark.parametrize(
    ("text", "passes"),
    [
        ("", ""),
        ("  {", "{"),
        ("[1]", ""),
        ('"{}"', ""),
        ("{,", "{"),
        ("{'a'", "{"),
        ('{"a" 1', '{"a" '),
        ('{"a":1,}', '{"a":1,'),
        ('{"a":01}', '{"a":'),
        ('{"a":1.}', '{"a":1.'),
        ('{"a":-}', '{"a":-'),
        ('{"a":+1}', '{"a":'),
        ('{"a":NaN}', '{"a":'),
        ('{"a":truth}', '{"a":'),
        ('{"a":[1}', '{"a":[1'),
        ('{"a":"\\x"}', '{"a":"\\'),
        ('{"a":"x\ny"}', '{"a":"x'),
        ('{"a":"\\ud83dx"}', '{"a":"\\ud83d'),
        ('{"a":"\\ude00"}', '{"a":"\\ud'),
        ('{"a":"\\ud83d\\n"}', '{"a":"\\ud83d\\'),
        ('{"a":"\\ud83d\\ude00"}', '{"a":"\\ud83d\\ude00"}'),
        ('{"a":"\\uD83D\\uDE00"}', '{"a":"\\uD83D\\uDE00"}'),
        ('{"a":1} {', '{"a":1} '),
        ('{"a":' + "9" * 400 + "}", '{"a":'),
    ],
)
def test_what_cannot_go_on_is_held_back(text: str, passes: str) -> None:
    assert ObjectText().feed(text) == passes
    one = ObjectText()
    assert "".join(map(one.feed, text)).startswith(passes)


def test_depth_is_bounded_below_what_parsers_bear() -> None:
    passed = ObjectText().feed('{"a":' + "[" * 300)
    assert 50 < passed.count("[") < 150
    from_json(passed.encode(), partial_mode=True)


def test_escapes_cost_no_more_than_a_step_each_run() -> None:
    """A megabyte in one event is read while every other stream waits."""
    text = json.dumps({"code": 'if "\u00e9":\n\treturn "\\n"\n' * 40_000})
    steps = 0

    class Counted(ObjectText):
        __slots__ = ()

        def _string(self, text: str, position: int) -> int:
            nonlocal steps
            steps += 1
            return super()._string(text, position)

    assert Counted().feed(text) == text
    assert len(text) > 1_000_000 and steps < 20


@given(st.text(st.sampled_from('{}[]":,\\/ud8Dc0-+1eE.trnfalsu \n'), max_size=30))
def test_what_passes_is_the_beginning_of_json_for_others_too(text: str) -> None:
    one = ObjectText()
    for prefix in ("", '{"a":', '{"a":"\\', '{"a":"\\ud83d'):
        one = ObjectText()
        passed = one.feed(prefix + text)
        assert (prefix + text).lstrip().startswith(passed)
        if one.begun:
            found = from_json(passed.encode(), partial_mode=True)
            assert isinstance(found, dict)
            assert not one.complete or found == json.loads(passed)
