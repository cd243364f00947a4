from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.docs.shell import Shell


@pytest.fixture
def shell(tmp_path: Path) -> Iterator[Shell]:
    with Shell(tmp_path) as found:
        yield found


def test_variables_last_and_the_folder_is_home(shell: Shell) -> None:
    shell.run("export NAME=value\ncd /")
    assert shell.run("echo $NAME $HOME").split() == ["value", "~"]


@pytest.mark.parametrize("command", ["false", "false\ntrue", "true; ls /nowhere; true"])
def test_a_failing_part_fails_the_whole(shell: Shell, command: str) -> None:
    with pytest.raises(AssertionError):
        shell.run(command)


def test_a_failure_that_is_expected_is_none(shell: Shell) -> None:
    assert shell.run("false || echo status $?").split() == ["status", "1"]


def test_a_command_that_asks_gets_no_answer(shell: Shell) -> None:
    assert shell.run('read -r line || echo "nobody: $line"').split() == ["nobody:"]


def test_ports_are_free_ones_and_shown_as_they_were_typed(shell: Shell, tmp_path: Path) -> None:
    assert shell.run("echo http://127.0.0.1:8080 18080 > file.yaml; cat file.yaml").split() == [
        "http://127.0.0.1:8080",
        "18080",
    ]
    written = (tmp_path / "file.yaml").read_text()
    assert ":8080" not in written and "18080" in written
    shell.run("printf 'port: 80%s' 80 > made.yaml")
    port = written.partition(" ")[0].rpartition(":")[2]
    assert (tmp_path / "made.yaml").read_text() == f"port: {port}"


def test_a_server_is_ready_and_goes_on(shell: Shell) -> None:
    shell.run("gateway sim --port 8001 --model tiny   # in a terminal of its own")
    assert "tiny" in shell.run("curl -s http://127.0.0.1:8001/v1/models")
