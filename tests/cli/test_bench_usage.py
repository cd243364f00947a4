"""Wrong use of `gateway bench` is said in a sentence before anything is sent."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.support.ports import nobody

Run = Callable[..., Any]


def said(found: Any) -> str:
    """Typer draws a box around its errors."""
    return " ".join(re.sub("[─│╭╮╰╯]", " ", found.err).split())


@pytest.fixture
def refused(run: Run, monkeypatch: pytest.MonkeyPatch) -> Callable[..., str]:
    """What is said of arguments that end with status 2, with nobody there to answer."""

    def refused(*arguments: str) -> str:
        monkeypatch.setenv("COLUMNS", "400")
        with nobody() as url:
            monkeypatch.setenv("GATEWAY_URL", url)
            found = run("bench", "--model", "m", *arguments)
        assert found.status == 2, found
        return said(found)

    return refused


def test_the_status_is_told_by_its_help(run: Run) -> None:
    told = " ".join(run("bench", "--help").out.split())
    assert "Ends with status 0 once a round is complete, whatever failed in it" in told


@pytest.mark.parametrize(
    ("arguments", "status", "words"),
    [
        (("--model", "m"), 1, "trial request failed (connect)"),
        ((), 1, "Nothing answers at http:"),
        (("--json", "/nowhere/out.json"), 1, "/nowhere/out.json: No such file"),
        (("--dataset", "/nowhere", "--workload", "custom", "--model", "m"), 1, "/nowhere: No such"),
        (("--url", "nonsense"), 2, "is no http(s)://HOST:PORT"),
    ],
)
def test_what_cannot_be_done_is_said(
    arguments: tuple[str, ...],
    status: int,
    words: str,
    run: Run,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("COLUMNS", "400")
    with nobody() as url:
        monkeypatch.setenv("GATEWAY_URL", url)
        found = run("bench", *arguments)
    assert found.status == status
    assert words in said(found)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--workload", "heavy"), "'heavy' is not one of 'shared-prefix', 'no-shared-prefix'"),
        (("--api", "embeddings"), "'embeddings' is not one of 'chat', 'completions'"),
        (("--workload", "replay"), "name it with --dataset"),
        (("--threshold", "p42=1"), "'p42' is none of p90"),
        (("--extra-body", "[]"), "is no JSON object"),
        (("--extra-body", '{"a": NaN}'), "is no JSON object"),
        (("--extra-body", '{"top_k": …}'), "is no JSON object"),
        (("--extra-body", '{"a": "\udcff"}'), "is no JSON object"),
        (("--extra-body", "[" * 100_000), "is no JSON object"),
        (("--engine", "http://x"), "takes NAME=URL"),
        (("--engine", "a=http://"), "for --engine: holds no http(s)://HOST:PORT"),
        (("--engine", "a\x1b=http://x"), "takes NAME=URL"),
        (("--dcgm", "http://["), "for --dcgm: holds no http(s)://HOST:PORT"),
        (("--gpu", "a"), "is no ARM=0,1"),
        (("--burstiness", "0.5"), "without --request-rate nothing arrives: leave out --burstiness"),
    ],
)
def test_a_wrong_value_is_refused(
    arguments: tuple[str, ...], words: str, refused: Callable[..., str]
) -> None:
    assert words in refused(*arguments)


@pytest.mark.parametrize(
    ("option", "value"),
    [
        *(("--arm", name) for name in ("a\r\nx-admin: 1", "a\nb", "a\x00", " a", "a\udcff")),
        ("--model", "m\n"),
        ("--model", "m\udcff"),
        ("--key", "sk-a\r\nx-admin: 1"),
        ("--admin-key", "sk-a\r\nx-admin: 1"),
        ("--url", "http://127.0.0.1:1/a b"),
        ("--url", "http://127.0.0.1:1/a\x0bb"),
    ],
)
def test_control_characters_reach_no_head(
    option: str, value: str, refused: Callable[..., str]
) -> None:
    found = refused(option, value)
    assert f"Invalid value for {option}: " in found and "characters" in found


@pytest.mark.parametrize("variable", ["GATEWAY_KEY", "GATEWAY_ADMIN_KEY"])
def test_a_key_of_the_environment_is_called_so(
    variable: str, refused: Callable[..., str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(variable, "sk-a\nb")
    assert f"Invalid value for {variable}: " in refused()


@pytest.mark.parametrize(
    "option",
    [
        *("--prefix-tokens", "--question-tokens", "--requests", "--turns", "--rounds"),
        *("--concurrency", "--output-tokens", "--seed"),
    ],
)
def test_whole_numbers_have_an_end(option: str, refused: Callable[..., str]) -> None:
    found = refused(option, str(10**12))
    assert f"Invalid value for '{option}': Input should be less than or equal to" in found


@pytest.mark.parametrize(
    "option", ["--request-rate", "--burstiness", "--think", "--timeout", "--slo-ttft-ms"]
)
@pytest.mark.parametrize("value", ["inf", "nan"])
def test_numbers_are_finite(option: str, value: str, refused: Callable[..., str]) -> None:
    # `vllm bench serve` takes a rate of `inf` for all at once: that is a closed loop here.
    assert "Input should be less than or equal to" in refused(option, value)


def test_a_round_that_no_memory_holds_is_refused(refused: Callable[..., str]) -> None:
    found = refused("--prefix-tokens", "10000000", "--requests", "100000")
    assert "a round of 100,000 requests of about 10,000,020 tokens each" in found
    assert "at most 500,000,000 are held ready" in found


@pytest.mark.parametrize(
    ("workload", "option"),
    [
        ("shared-prefix", ("--dataset", "x.jsonl")),
        ("sessions", ("--cold",)),
        ("custom", ("--prefix-tokens", "1600")),
        ("no-shared-prefix", ("--think", "1")),
    ],
)
def test_what_a_workload_would_not_heed_is_refused(
    workload: str, option: tuple[str, ...], refused: Callable[..., str]
) -> None:
    found = refused("--workload", workload, *option)
    assert f"--workload {workload} has no use for it: leave out {option[0]}" in found


def test_a_saved_run_takes_no_options_of_sending(
    tmp_path: Path, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "400")
    monkeypatch.setenv("GATEWAY_URL", "http://127.0.0.1:9")
    html = tmp_path / "out.html"
    sending = ("--requests", "200", "--no-warm-up", "--arm", "a", "--arm", "b")
    found = run("bench", "--from", "out.json", "--html", str(html), *sending)
    assert found.status == 2 and not html.exists()
    assert "--from sends nothing: leave out --arm, --requests, --warm-up/--no-warm-up" in said(
        found
    )


def test_an_option_of_the_environment_does_not_keep_a_saved_run_from_being_shown(
    tmp_path: Path, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "out.json"
    file.write_text(json.dumps({"format": "ttft-gateway-bench", "version": 7}))
    monkeypatch.setenv("GATEWAY_KEY", "sk-1")
    found = run("bench", "--from", str(file))
    assert (found.status, "version 7" in found.err) == (1, True)
