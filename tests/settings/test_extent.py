"""What aliases may add up to. Nothing here waits: what is refused is refused before it is built."""

from __future__ import annotations

from pathlib import Path

import pytest

from gateway.errors import ConfigError
from gateway.settings import load
from gateway.settings.source import read
from tests.settings.samples import loaded
from tests.settings.test_source import GOOD

TOO_LARGE = "its aliases, written out, would add more than 1000000 characters"

LEVELS = [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]" for n in range(1, 11)]
LISTS = "\n".join(["a0: &a0 [lol]", *LEVELS])
MAPPINGS = LISTS.replace("[", "{k: [").replace("]", "]}")
MERGES = "\n".join(["a0: &a0 {k: v}", *(f"{one.replace('[', '{<<: [')}}}" for one in LEVELS)])
KEYS = "\n".join(
    ["a0: &a0 [x]", *(f"? &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]\n: 1" for n in range(1, 11))]
)
LONG_TEXT = f"a: &a {'x' * 2000}\nb: [{', '.join(['*a'] * 1000)}]"


def refused(text: str) -> list[str]:
    with pytest.raises(ConfigError) as caught:
        read(text.encode(), "x.yaml")
    return caught.value.faults


@pytest.mark.parametrize(
    "text",
    [LISTS, MAPPINGS, MERGES, KEYS, LONG_TEXT],
    ids=["lists", "mappings", "merges", "keys", "long text"],
)
def test_a_few_lines_that_stand_for_millions(text: str) -> None:
    assert refused(text) == [f"x.yaml: {TOO_LARGE}"]


def test_anywhere_in_the_gateway_s_configuration(tmp_path: Path) -> None:
    below = "\n".join(f"  {line}" for line in LISTS.splitlines())
    path = tmp_path / "gateway.yaml"
    path.write_text(f"{GOOD}traces:\n{below}\n")
    with pytest.raises(ConfigError) as caught:
        load(path, {})
    assert caught.value.faults == [f"gateway.yaml: {TOO_LARGE}"]


def test_a_long_file_without_aliases_is_none(tmp_path: Path) -> None:
    aliases = ", ".join("m" * 100 + str(n) for n in range(10_500))
    text = GOOD.replace("{arms:", f"{{aliases: [{aliases}], arms:")
    assert len(text) > 1_000_000
    assert len(loaded(tmp_path, text).models["m"].aliases) == 10_500


def test_aliases_as_people_use_them(tmp_path: Path) -> None:
    common = "{requests_per_minute: 600, tokens_per_minute: 200000, max_concurrency: 32}"
    keys = [f'- {{<<: *common, name: k{n}, key_sha256: "{n:064x}"}}' for n in range(256)]
    first = f"- &common {common[:-1]}, name: first, key_sha256: {'f' * 64}}}"
    text = "\n".join([*GOOD.splitlines()[:2], "keys:", first, *keys])
    found = loaded(tmp_path, text).keys
    assert len(found) == 257
    assert {key.max_concurrency for key in found} == {32}


@pytest.mark.parametrize(
    "text",
    [
        "a: " + "[" * 101 + "]" * 101,
        "\n".join(["a0: &a0 [x]", *(f"a{n}: &a{n} [*a{n - 1}]" for n in range(1, 101))]),
    ],
    ids=["brackets", "aliases"],
)
def test_depth(text: str) -> None:
    assert refused(text) == ["x.yaml: is nested too deeply"]


def test_a_key_given_twice_is_told_once_where_it_is_written() -> None:
    _, faults = read(b"a: &a {x: 1, x: 2}\nb: [*a, *a]\nc: {d: *a}\n", "x")
    assert [str(one) for one in faults] == ["a.x: is given twice, in lines 1 and 1: keep one"]
