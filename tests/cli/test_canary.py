from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from tests.admin.fake import FakeControl

Run = Callable[..., Any]


@pytest.fixture(autouse=True)
def _person(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LOGNAME", "alice")


def rows(text: str) -> list[list[str]]:
    return [line.split() for line in text.splitlines()]


def test_set_weights(run: Run, url: str, control: FakeControl) -> None:
    result = run("canary", "set", "llama", "chunk-512=75", "chunk-64=25.0", "--reason", "step 2")
    assert result.status == 0, result.err
    assert control.table.routes["llama"].weights == {"chunk-512": 75, "chunk-64": 25}
    assert (control.changes[0].by, control.changes[0].reason) == ("alice (cli)", "step 2")
    assert ["chunk-64", "canary", "25", "25", "%", "10", "1", "of", "1", "usable"] in rows(
        result.out
    )
    assert "revision 1" in result.out


def test_weights_that_confound_the_comparison(run: Run, url: str) -> None:
    """`gateway check` knows those of the file only."""
    uneven = run("canary", "set", "llama", "chunk-512=75", "chunk-64=25")
    assert (
        "Confounded: a backend of chunk-64 gets 25 % of the traffic, one of chunk-512 75 %"
        in uneven.out
    )
    assert "Confounded" in run("canary", "status", "llama").out
    assert "Confounded" not in run("canary", "set", "llama", "chunk-512=25").out


def test_set_one_weight_with_the_revision_seen(run: Run, url: str, control: FakeControl) -> None:
    assert run("canary", "set", "gpt-4o-local", "chunk-64=0", "--revision", "0").status == 0
    result = run("canary", "set", "llama", "chunk-64=5", "--revision", "0")
    assert result.status == 1
    assert "revision 1" in result.err
    assert control.table.routes["llama"].weights == {"chunk-512": 90, "chunk-64": 0}


def test_set_in_json(run: Run, url: str) -> None:
    result = run("canary", "set", "llama", "chunk-64=30", "--json")
    assert json.loads(result.out)["revision"] == 1


@pytest.mark.parametrize(
    "weight", ["chunk-64", "chunk-64=", "=5", "chunk-64=-1", "chunk-64=nan", "chunk-64=inf", "a=5%"]
)
def test_a_weight_that_is_none(run: Run, url: str, control: FakeControl, weight: str) -> None:
    result = run("canary", "set", "llama", weight)
    assert result.status == 2
    assert "ARM=WEIGHT" in result.err
    assert control.changes == []


@pytest.mark.parametrize("more", [[], ["chunk-64=25"]])
def test_a_model_that_was_left_out(run: Run, url: str, more: list[str]) -> None:
    result = run("canary", "set", "chunk-512=75", *more)
    assert result.status == 2
    said = " ".join(result.err.replace("│", " ").split())
    assert "the model comes first: gateway canary set llama-3-70b chunk-512=75" in said


def test_an_arm_named_twice(run: Run, url: str) -> None:
    result = run("canary", "set", "llama", "chunk-64=1", "chunk-64=2")
    assert (result.status, "named twice" in result.err) == (2, True)


def test_what_the_gateway_refuses(run: Run, url: str) -> None:
    result = run("canary", "set", "llama", "chunk-63=1")
    assert (result.status, result.out) == (1, "")
    assert "no arm `chunk-63`" in result.err
    result = run("canary", "set", "nope", "chunk-64=1")
    assert (result.status, "`llama`" in result.err) == (1, True)


def test_a_model_with_a_slash(run: Run, url: str, control: FakeControl) -> None:
    assert run("canary", "set", "org/small", "only=2").status == 0
    assert control.table.routes["org/small"].weights == {"only": 2}


def test_status_of_all_models(run: Run, url: str) -> None:
    result = run("canary", "status")
    assert result.status == 0
    assert "llama: revision 0, as in the file" in result.out
    assert "org/small: revision 0, as in the file" in result.out
    assert ["chunk-512", "control", "90", "90", "%", "90", "1", "of", "1", "usable"] in rows(
        result.out
    )


def test_status_says_who_set_the_weights(run: Run, url: str) -> None:
    run("canary", "set", "llama", "chunk-64=30", "--reason", "looks good")
    result = run("canary", "status", "llama")
    assert "revision 1, set by alice (cli) at 2023-11-14 22:13:20 UTC: looks good" in result.out
    assert "org/small" not in result.out


def test_status_warns_of_an_arm_that_cannot_serve(run: Run, url: str, control: FakeControl) -> None:
    control.table.backends["vllm-b"].up = False
    result = run("canary", "status", "llama")
    assert result.status == 0
    assert "chunk-64 has a share of the traffic and no usable backend" in result.err


def test_status_in_json(run: Run, url: str) -> None:
    assert [model["name"] for model in json.loads(run("canary", "status", "--json").out)] == [
        "llama",
        "org/small",
    ]
    assert json.loads(run("canary", "status", "llama", "--json").out)["name"] == "llama"
