from __future__ import annotations

from pathlib import Path

import pytest

from gateway.errors import ConfigError
from gateway.settings.source import read
from tests.settings.samples import faults

GOOD = """models: {m: {arms: {a: {weight: 1, backends: [b]}}}}
backends: {b: {url: "http://127.0.0.1:8001"}}
keys: [{name: dev, key: 0f1e2d3c4b5a69788796a5b4c3d2e1f0}]
"""


def test_a_key_given_twice_in_a_mapping(tmp_path: Path) -> None:
    text = GOOD + "server:\n  port: 1\n  host: localhost\n  port: 2\n"
    assert faults(tmp_path, text) == ["server.port: is given twice, in lines 5 and 7: keep one"]


def test_an_arm_given_twice(tmp_path: Path) -> None:
    arms = "{a: {weight: 1, backends: [b]},\n a: {weight: 9, backends: [b]}}"
    text = GOOD.replace("{a: {weight: 1, backends: [b]}}", arms)
    assert faults(tmp_path, text) == ["models.m.arms.a: is given twice, in lines 1 and 2: keep one"]


def test_a_key_given_twice_in_json() -> None:
    data, found = read(b'{"server": {}, "server": {"port": 1}}', "x.json")
    assert data == {"server": {"port": 1}}
    assert [str(one) for one in found] == ["server: is given twice, in lines 1 and 1: keep one"]


def test_merged_keys_may_be_given_again() -> None:
    data, found = read(b"a: &a {x: 1, y: 2}\nb: {<<: *a, x: 3}\n", "x")
    assert data["b"] == {"x": 3, "y": 2}
    assert not found


def test_dates_stay_text() -> None:
    assert read(b"a: 2024-01-01\nb: =\n", "x")[0] == {"a": "2024-01-01", "b": "="}


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("{key: ${NAME}, other: 1}", {"key": "${NAME}", "other": 1}),
        ("[${file:/run/secrets/x}, a-${B}.${C}]", ["${file:/run/secrets/x}", "a-${B}.${C}"]),
        ('{key: "${NAME}", plain: $${NAME}}', {"key": "${NAME}", "plain": "$${NAME}"}),
        ("${NAME}", "${NAME}"),
        ("{${NAME}: 1}", {"${NAME}": 1}),
        ('"${file:/a b}"', "${file:/a b}"),
        ("&x ${NAME}\nb: *x", "${NAME}"),
    ],
)
def test_references_need_no_quotes(text: str, value: object) -> None:
    assert read(f"a: {text}\n".encode(), "x")[0]["a"] == value


def test_names_must_be_text(tmp_path: Path) -> None:
    found = faults(tmp_path, GOOD.replace("models: {m:", "models: {70:"))
    assert found == ["models.70: YAML does not read this name as text: put it in quotes"]
    # YAML's own traps: on and no are truth values, and 0.10 is the number 0.1.
    found = faults(tmp_path, GOOD + "on: 1\nmetrics: {0.10: 2}\n")
    assert found == [
        "on: YAML does not read this name as text: put it in quotes",
        "metrics.0.10: YAML does not read this name as text: put it in quotes",
    ]
    found = faults(tmp_path, GOOD + "metrics: {? : 1}\n")
    assert found == ['metrics."": YAML does not read this name as text: put it in quotes']


COLON = (
    "a colon that cannot stand here: the line is indented too far, the one above lacks its colon, "
    "or a value with a colon needs quotes"
)
NOTHING = "text that goes on from nothing: a name without its colon, or an unclosed quote above"
COLUMN = "does not line up with what stands above: names that belong together begin in one column"


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("[a, b]", "x.yaml: must be a mapping with models, backends and keys"),
        ("just text", "x.yaml: must be a mapping with models, backends and keys"),
        ("a: b: c", f"x.yaml: line 1, column 5: {COLON}"),
        ("server:\n  host: x\n    port: 1", f"x.yaml: line 3, column 9: {COLON}"),
        ("server:\n  host x\n  port: 1", f"x.yaml: line 3, column 7: {COLON}"),
        ("server:\n  host: x\n port: 1", f"x.yaml: line 3, column 2: {COLUMN}"),
        ("keys:\n  - name: a\n   key: b", f"x.yaml: line 3, column 4: {COLUMN}"),
        (
            "server:\n  host: x\n  port 1\nmodels: {}",
            "x.yaml: line 4, column 1: the name in line 3 has no colon behind it",
        ),
        (
            "arms:\n  a: {weight: 1, backends: [x]\n  b: {weight: 1}",
            "x.yaml: line 3, column 3: the bracket opened in line 2 lacks a comma or its end "
            "before this",
        ),
        ("a: 1\nb: 'c\nd: 2", "x.yaml: line 3, column 5: the quote opened in line 2 is not closed"),
        (
            'a: "b\nc: "d"',
            f"x.yaml: line 2, column 5: {NOTHING}",
        ),
        ("a: b  # c\n  oops", f"x.yaml: line 2, column 3: {NOTHING}"),
        ("a: *", "x.yaml: line 1, column 5: a value that begins with * or & needs quotes"),
        ("a:\n\tb: 1", "x.yaml: line 2, column 1: a tab, where YAML wants spaces"),
        ("a: *nowhere", "x.yaml: line 1, column 4: found undefined alias"),
        (
            "a: !python/name:os.system ''",
            "x.yaml: line 1, column 4: could not determine a constructor for the tag",
        ),
        ("a: !!timestamp x", "x.yaml: line 1, column 4: a value that cannot be read"),
        ("a: !!bool x", "x.yaml: line 1, column 4: a value that cannot be read"),
        ("a: !!int ''", "x.yaml: line 1, column 4: a value that cannot be read"),
        ("a: " + "1" * 5000, "x.yaml: line 1, column 4: a value that cannot be read"),
        ('a: "\\ud800"', "x.yaml: line 1, column 4: a value that cannot be read"),
        ("a: 1\n---\nb: 2", "x.yaml: line 2, column 1: but found another document"),
        ("a: &a [*a]", "x.yaml: an anchor contains itself, at line 1"),
        ("a: " + "[" * 3000, "x.yaml: is nested too deeply"),
        ("a: 1\nb: \x07", "x.yaml: line 2 holds a character YAML does not allow"),
        ("? [a, b]\n: 1", "x.yaml: line 1, column 3: found unhashable key"),
    ],
)
def test_text_that_is_no_configuration(text: str, fault: str) -> None:
    with pytest.raises(ConfigError) as caught:
        read(text.encode(), "x.yaml")
    assert caught.value.faults == [fault]


def test_bytes_that_are_no_text() -> None:
    with pytest.raises(ConfigError) as caught:
        read(b"a: \xff", "x.yaml")
    assert caught.value.faults == ["x.yaml: is not UTF-8 text (byte 3)"]
