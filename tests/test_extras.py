"""Optional parts are asked for in one way, and only by names that pyproject.toml knows."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement

from gateway.extras import EXTRAS, Extra, install

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
PAGES = [*ROOT.glob("*.md"), *ROOT.glob("docs/*.md"), *ROOT.glob("deploy/**/*.md")]
SOURCES = [one for one in ROOT.glob("gateway/**/*.py") if one.name != "extras.py"]


def test_every_extra_is_one_of_the_project_s() -> None:
    assert set(EXTRAS) == set(PROJECT["project"]["optional-dependencies"])


@pytest.mark.parametrize("extra", EXTRAS)
def test_the_command_is_one_that_pip_takes(extra: Extra) -> None:
    spec = re.fullmatch(r"pip install '\.(\[.+\])' in the checkout", install(extra))
    assert spec is not None
    assert Requirement(f"{PROJECT['project']['name']}{spec[1]}").extras == {extra}


def test_every_message_that_names_an_extra_says_it_so() -> None:
    """mypy keeps the names right; what it cannot see is a message with words of its own."""
    assert len(SOURCES) > 100
    own = [
        f"{path.relative_to(ROOT)}: {line.strip()}"
        for path in SOURCES
        for line in path.read_text().splitlines()
        if "pip install" in line or re.search(r"(?:ttft-gateway|'\.)\[", line)
    ]
    assert own == []


def test_every_extra_is_named_where_its_packages_are_missing() -> None:
    text = "".join(path.read_text() for path in SOURCES)
    named = set(re.findall(r"\binstall\(['\"](\w+)['\"]\)", text))
    assert named == set(EXTRAS)


def test_the_docs_say_it_so_too() -> None:
    text = "".join(path.read_text() for path in PAGES)
    assert "ttft-gateway[" not in text
    named = re.findall(r"pip install '\.\[(\w+)\]'", text)
    assert set(named) == set(EXTRAS)
    assert text.count("pip install '.[") == len(named)
