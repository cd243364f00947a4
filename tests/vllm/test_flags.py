"""What became of flags, and the table that says so."""

from __future__ import annotations

from pathlib import Path

import pytest

from gateway.vllm import Fate, Flag, Kind, Version, flag
from gateway.vllm.flag_table import RELEASES, TABLE
from gateway.vllm.flags import canonical, known, release_for
from tests.vllm import reading

NEW = Version.parse("0.32")
OLD = Version.parse("0.6.3.post1")


@pytest.mark.parametrize(
    ("name", "old", "new"),
    [
        ("max-num-batched-tokens", Kind.VALUE, Kind.VALUE),
        ("enable-chunked-prefill", Kind.STORE_BOOLEAN, Kind.BOOLEAN),
        ("enable-prefix-caching", Kind.SWITCH, Kind.BOOLEAN),
        ("disable-log-stats", Kind.SWITCH, Kind.SWITCH),
    ],
)
def test_how_a_flag_is_written_depends_on_the_version(name: str, old: Kind, new: Kind) -> None:
    assert flag(name, OLD) == Flag(name, Fate.PRESENT, old)
    assert flag(name, NEW) == Flag(name, Fate.PRESENT, new)


@pytest.mark.parametrize(
    ("name", "last"),
    [
        ("swap-space", "0.16.0"),
        ("num-lookahead-slots", "0.10.2"),
        ("max-num-partial-prefills", "0.24.0"),
        ("max-long-partial-prefills", "0.24.0"),
        ("disable-log-requests", "0.16.0"),
    ],
)
def test_removed_flags_of_the_article_tell_what_takes_their_place(name: str, last: str) -> None:
    found = flag(name, NEW)

    assert (found.fate, found.release) == (Fate.REMOVED, last)
    assert found.instead
    assert flag(name, Version.parse(last)).fate is Fate.PRESENT


def test_flags_that_come_later() -> None:
    assert flag("data-parallel-size", OLD) == Flag(
        "data-parallel-size", Fate.NOT_YET, Kind.VALUE, "0.8.5"
    )


def test_a_name_that_no_release_has_had_but_many_use() -> None:
    assert flag("--scheduler_policy", NEW) == Flag("scheduling-policy", Fate.PRESENT)


def test_the_nearest_name_of_an_unknown_flag() -> None:
    assert flag("max-num-batch-tokens", NEW).instead == "--max-num-batched-tokens"
    assert flag("quux", NEW) == Flag("quux", Fate.UNKNOWN)


def test_names_with_dashes_underscores_and_negated() -> None:
    assert canonical("--no-enable_prefix_caching") == "enable-prefix-caching"
    assert canonical("no-such-flag") == "no-such-flag"


@pytest.mark.parametrize(
    ("version", "release"),
    [("0.6", "0.6.3"), ("0.8.4", "0.7.3"), ("0.10.1", "0.9.2"), ("0.32.1", "0.32.0")],
)
def test_between_two_releases_the_older_one_counts(version: str, release: str) -> None:
    assert release_for(Version.parse(version)) == release


def test_the_table_is_whole() -> None:
    assert [len(known(Version.parse(one))) for one in RELEASES] == [
        114, 136, 137, 164, 176, 194, 212, 239, 266, 284, 317,
    ]  # fmt: skip


SOURCE = """
class EngineArgs:
    model: str = "x"
    enable_prefix_caching: bool | None = None

    def add_cli_args(parser):
        parser.add_argument("--model", type=str)
        parser.add_argument("--swap-space", type=float)
        group.add_argument("--enable-prefix-caching", **kwargs["enable_prefix_caching"])
        group.add_argument("--disable-log-stats", action="store_true")
        group.add_argument("-x", "--old_name", action=StoreBoolean)
"""
SERVER = """
class FrontendArgs:
    port: int = 8000
    enable_x: bool = False
"""


def package(folder: Path, source: str = SOURCE) -> Path:
    (folder / "engine").mkdir(parents=True)
    (folder / "entrypoints/openai").mkdir(parents=True)
    (folder / "engine/arg_utils.py").write_text(source)
    (folder / "entrypoints/openai/cli_args.py").write_text(SERVER)
    return folder


def test_flags_are_read_from_a_release(tmp_path: Path) -> None:
    assert reading.flags_of(package(tmp_path)) == {
        "disable-log-stats": Kind.SWITCH,
        "enable-prefix-caching": Kind.BOOLEAN,
        "enable-x": Kind.BOOLEAN,
        "model": Kind.VALUE,
        "old-name": Kind.STORE_BOOLEAN,
        "port": Kind.VALUE,
        "swap-space": Kind.VALUE,
    }


def test_differences_between_table_and_release(tmp_path: Path) -> None:
    found = reading.differences("0.32.0", package(tmp_path))

    assert "host is no flag of 0.32.0" in found
    assert [one for one in found if "the table says" in one] == [
        "enable-x is boolean in 0.32.0, the table says unknown value",
        "old-name is store-boolean in 0.32.0, the table says unknown value",
        "swap-space is value in 0.32.0, the table says removed value",
    ]


def test_a_table_is_written_in_the_form_of_the_table(tmp_path: Path) -> None:
    first = reading.flags_of(package(tmp_path / "1"))
    later = reading.flags_of(package(tmp_path / "2", SOURCE.replace("swap-space", "kv-x")))

    assert reading.table({"1.0": first, "1.1": later}) == [
        "1.0..1.0 value: swap-space",
        "1.0.. boolean: enable-prefix-caching enable-x",
        "1.0.. store-boolean: old-name",
        "1.0.. switch: disable-log-stats",
        "1.0.. value: model port",
        "1.1.. value: kv-x",
    ]
    assert TABLE.startswith("0.6.3..0.6.3 switch: ")
