from __future__ import annotations

from pathlib import Path

import pytest

from gateway.settings.substitute import Substitution
from tests.settings.samples import OTHER_KEY, changed, faults, loaded


def test_variables_and_files(tmp_path: Path) -> None:
    (tmp_path / "key").write_text("of-a-file\r\n")
    substitution = Substitution({"HOST": "h", "PORT": "80", "EMPTY": ""}, tmp_path)
    data = {
        "url": "http://${HOST}:${PORT}",
        "list": ["${file:key}", f"${{file:{tmp_path}/key}}", 7, None, True],
        "plain": "$HOST $${HOST} $$ $",
        "empty": "${EMPTY}",
    }
    assert substitution.apply(data) == {
        "url": "http://h:80",
        "list": ["of-a-file", "of-a-file", 7, None, True],
        "plain": "$HOST ${HOST} $$ $",
        "empty": "",
    }
    assert not substitution.faults


def test_what_a_variable_holds_is_not_looked_at_again() -> None:
    assert Substitution({"A": "${B}", "B": "b"}, Path()).apply("${A}") == "${B}"


def test_names_are_not_substituted() -> None:
    assert Substitution({"A": "a"}, Path()).apply({"${A}": 1}) == {"${A}": 1}


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("${NONE}", "the environment variable NONE is not set"),
        ("a${A}b${NONE}", "the environment variable NONE is not set"),
        ("${}", "a reference is ${NAME} or ${file:/path}; write $${ for a plain ${"),
        ("${A", "a reference is ${NAME} or ${file:/path}; write $${ for a plain ${"),
        ("${A:-b}", "a reference is ${NAME} or ${file:/path}; write $${ for a plain ${"),
        ("${file:none}", "cannot read the file none: No such file or directory"),
        ("${file:.}", "cannot read the file .: Is a directory"),
        ("${file:binary}", "the file binary is not UTF-8 text"),
    ],
)
def test_references_that_lead_nowhere(tmp_path: Path, text: str, fault: str) -> None:
    (tmp_path / "binary").write_bytes(b"\xff\xfe\x00")
    substitution = Substitution({"A": "a"}, tmp_path)
    substitution.apply({"keys": [{"key": text}]})
    assert [str(one) for one in substitution.faults] == [f"keys[0].key: {fault}"]


def test_a_secret_from_a_file_beside_the_configuration(tmp_path: Path) -> None:
    (tmp_path / "admin.key").write_text(OTHER_KEY + "\n")
    settings = loaded(tmp_path, changed(("admin", {"key": "${file:admin.key}"})))
    assert settings.admin.key is not None
    assert settings.admin.key.get_secret_value() == OTHER_KEY


def test_a_variable_that_is_not_set_is_the_only_fault_of_its_place(tmp_path: Path) -> None:
    data = changed(("backends/vllm-a/api_key", "${VLLM_A_KEY}"), ("keys/0/key", "${GATEWAY_KEY}"))
    assert faults(tmp_path, data) == [
        "backends.vllm-a.api_key: the environment variable VLLM_A_KEY is not set",
        "keys[0].key: the environment variable GATEWAY_KEY is not set",
    ]


def test_numbers_may_come_from_the_environment(tmp_path: Path) -> None:
    data = changed(("models/small/arms/only/weight", "${W}"))
    assert loaded(tmp_path, data, {"W": "2.5"}).models["small"].arms["only"].weight == 2.5
