"""JSON with comments: what is changed, and that nothing else is."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.cli.connect.jsonc import read, updated

FILE = """\
{
  // mine
  "$schema": "https://x//y", /* of it */
  "provider": {
    "old": {"a": 1, "n": [1, 2]}, // keep
    // the last line
  },
  "empty": {},
  "model": "a/b" // the model
}
"""


def test_comments_and_last_commas_are_read_over() -> None:
    assert read(FILE)["provider"] == {"old": {"a": 1, "n": [1, 2]}}
    assert read(FILE)["$schema"] == "https://x//y"
    assert read('{"a": "/* , */ }", /* } */ }') == {"a": "/* , */ }"}


def test_only_what_is_new_or_other_changes() -> None:
    content = read(FILE)
    content["provider"]["gw"] = {"npm": "x", "models": {"m": {}}}
    content["model"] = "gw/m"
    content["empty"]["k"] = "v"
    content["theme"] = "dark"
    assert (
        updated(FILE, content)
        == """\
{
  // mine
  "$schema": "https://x//y", /* of it */
  "provider": {
    "old": {"a": 1, "n": [1, 2]}, // keep
    // the last line
    "gw": {
      "npm": "x",
      "models": {
        "m": {}
      }
    },
  },
  "empty": {
    "k": "v"
  },
  "model": "gw/m", // the model
  "theme": "dark"
}
"""
    )


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ('{\n  "a": 1,\n  "b": 2\n}\n', '{\n  "a": 1\n}\n'),
        ('{\n  "a": 1,\n  "b": 2,\n}\n', '{\n  "a": 1,\n}\n'),
        ('{\n  "b": 2, // why\n  "a": 1\n}\n', '{\n   // why\n  "a": 1\n}\n'),
        ('{"b": 2, "a": 1}', '{ "a": 1}'),
        ('{"a": 1, "b": 2}', '{"a": 1 }'),
        ('{"b": 2}', "{}"),
    ],
)
def test_what_goes_takes_its_comma_along(before: str, after: str) -> None:
    content = read(before)
    del content["b"]
    assert updated(before, content) == after
    assert json.loads(after.replace("// why", "").replace(",\n}", "\n}")) == content


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ('{"a": 1}', '{"a": 1, "z": "ü"}'),
        ("{}\n", '{\n  "z": "ü"\n}\n'),
        ('{\r\n\t"a": 1\r\n}', '{\r\n\t"a": 1,\r\n\t"z": "ü"\r\n}'),
        ("{\n    // none yet\n}", '{\n    // none yet\n    "z": "ü"\n}'),
        ("// top\n{\n}\n// end\n", '// top\n{\n  "z": "ü"\n}\n// end\n'),
    ],
)
def test_what_comes_follows_the_layout(before: str, after: str) -> None:
    assert updated(before, {**read(before), "z": "ü"}) == after


@pytest.mark.parametrize(
    ("text", "line"), [("{\n // c\n a\n}", 3), ('{"a": 1 /* open\n}', 1), ('{"a": "x\n"}', 1)]
)
def test_a_fault_has_its_line(text: str, line: int) -> None:
    with pytest.raises(json.JSONDecodeError) as caught:
        read(text)
    assert caught.value.lineno == line


def test_a_name_that_stands_twice_is_not_guessed_at() -> None:
    with pytest.raises(ValueError, match="twice"):
        updated('{"a": 1, "a": 2}', {})


NAMES = st.text('ab"/*,', min_size=1, max_size=3)
TREE = st.recursive(
    st.text('x/*,}"\\', max_size=4) | st.integers(-9, 9) | st.none(),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(NAMES, inner, max_size=3),
    max_leaves=8,
)
OBJECT = st.dictionaries(NAMES, TREE, max_size=4)


def commented(data: Any, draw: Any) -> str:
    """The object as JSON, with comments, line ends and last commas strewn in."""
    number = iter(range(1000))

    def gap() -> str:
        kind = draw(st.sampled_from(["", " ", "\n", "/* {} */", "// {}\n"]))
        return str(kind).format(f"c{next(number)},}}")

    def text(value: Any) -> str:
        if isinstance(value, dict):
            pairs = [
                f"{gap()}{json.dumps(k)}{gap()}:{gap()}{text(v)}{gap()}" for k, v in value.items()
            ]
            last = draw(st.sampled_from(["", ","])) if pairs else ""
            return "{" + ",".join(pairs) + last + gap() + "}"
        if isinstance(value, list):
            return "[" + ",".join(gap() + text(one) + gap() for one in value) + "]"
        return json.dumps(value)

    return gap() + text(data) + gap()


@given(OBJECT, OBJECT, st.data())
def test_any_file_can_be_changed_to_any_other(before: Any, after: Any, data: Any) -> None:
    source = commented(before, data.draw)
    assert read(source) == before
    assert updated(source, before) == source
    assert read(updated(source, after)) == after


@given(OBJECT, OBJECT, st.data())
def test_adding_loses_no_comment(before: Any, more: Any, data: Any) -> None:
    source = commented(before, data.draw)
    added = {f"new {name}": value for name, value in more.items()}
    result = updated(source, before | added)
    rest = iter(result)
    assert all(character in rest for character in source), "something that was there is gone"
