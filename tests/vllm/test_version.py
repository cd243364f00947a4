"""Versions of vLLM, and their engines."""

from __future__ import annotations

import pytest

from gateway.vllm import Version, runs_v1


@pytest.mark.parametrize(
    ("older", "newer"),
    [("0.6.3", "0.7"), ("0.9.2", "0.10"), ("0.32", "0.32.1"), ("0.32", "1.0")],
)
def test_versions_are_compared_by_number(older: str, newer: str) -> None:
    assert Version.parse(older) < Version.parse(newer)


def test_ways_to_write_one_version() -> None:
    assert Version.parse("v0.6.3.post1") == Version.parse("0.6.3")
    assert Version.parse("0.32") == Version.parse("0.32.0")
    assert Version.parse("0.32.0rc1").text == "0.32.0rc1"


@pytest.mark.parametrize(
    ("text", "tag"), [("0.32", "v0.32.0"), ("v0.9.2", "v0.9.2"), ("0.6.3.post1", "v0.6.3.post1")]
)
def test_the_tag_of_the_image(text: str, tag: str) -> None:
    assert Version.parse(text).tag == tag


@pytest.mark.parametrize(
    ("stated", "runs", "covered"),
    [
        ("0.32", "0.32.1", True),
        ("0.32.0", "0.32.1", False),
        ("0.32", "0.33.0", False),
        ("0.6.3", "0.6.3.post1", True),
    ],
)
def test_a_line_of_releases_covers_its_patches(stated: str, runs: str, covered: bool) -> None:
    assert Version.parse(stated).covers(Version.parse(runs)) is covered


@pytest.mark.parametrize("text", ["", "latest", "0", "0.32.", "0.32-beta", "0.5.5", "x0.32"])
def test_what_is_no_version_or_too_old(text: str) -> None:
    with pytest.raises(ValueError, match=r"version of vLLM|older than 0\.6"):
        Version.parse(text)


@pytest.mark.parametrize(
    ("text", "wish", "v1"),
    [
        ("0.6.3", "1", False),
        ("0.7.3", None, False),
        ("0.7.3", "1", True),
        ("0.8", None, True),
        ("0.10.2", "0", False),
        ("0.11", "0", True),
        ("0.32", None, True),
    ],
)
def test_the_engine_of_a_version(text: str, wish: str | None, v1: bool) -> None:
    env = {} if wish is None else {"VLLM_USE_V1": wish}

    assert runs_v1(Version.parse(text), env) is v1
