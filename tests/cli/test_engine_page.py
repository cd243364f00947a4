"""docs/engine-settings.md: its commands print what it says, and it tells every setting."""

from __future__ import annotations

import doctest
import re
import shlex
from pathlib import Path

import pytest

from gateway.cli.engine_file import EXTENDS
from gateway.vllm import EngineConfig
from gateway.vllm.config import FIELD_FLAGS
from tests.cli.conftest import Run

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "engine-settings.md"
TEXT = PAGE.read_text()
SESSIONS = re.findall(r"^```console\n\$ (.+)\n((?:.*\n)*?)```$", TEXT, re.MULTILINE)
SETTINGS = re.search(r"^## The file\n(.*?)^## ", TEXT, re.MULTILINE | re.DOTALL)


def test_there_are_commands_to_run() -> None:
    assert len(SESSIONS) == TEXT.count("```console") >= 4


@pytest.mark.parametrize(("command", "output"), SESSIONS, ids=[one for one, _ in SESSIONS])
def test_commands_print_what_the_page_says(
    run: Run, monkeypatch: pytest.MonkeyPatch, command: str, output: str
) -> None:
    monkeypatch.chdir(ROOT)
    program, *arguments = shlex.split(command)

    if program == "cat":
        assert Path(*arguments).read_text() == output
    else:
        assert program == "gateway"
        assert run(*arguments).out == output


def test_examples_in_python() -> None:
    parser = doctest.DocTestParser()
    examples = "".join(re.findall(r"^```pycon\n(.*?)^```", TEXT, re.MULTILINE | re.DOTALL))

    runner = doctest.DocTestRunner(verbose=False)
    runner.run(parser.get_doctest(examples, {}, PAGE.name, str(PAGE), 0))

    assert runner.summarize(verbose=False) == (0, 6)


def test_the_page_tells_every_setting_and_no_other() -> None:
    assert SETTINGS is not None
    rows = re.findall(r"^\| (`[^|]*`) \| ", SETTINGS[1], re.MULTILINE)
    told = {name for row in rows for name in re.findall(r"`([a-z_]+)`", row)}

    assert told == {*EngineConfig.model_fields, EXTENDS}


def test_the_page_tells_the_flag_of_every_setting() -> None:
    assert SETTINGS is not None
    for setting, flag in FIELD_FLAGS.items():
        same = setting.endswith("_parallel_size")
        assert same or f"--{flag}" in SETTINGS[1], setting
