from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from gateway.cli.remote import show_table
from gateway.records import EngineFacts, TtftParts
from gateway.settings import EngineSettings
from gateway.settings.tree import RELAYED_APIS
from tests.admin.fake import FakeControl

Run = Callable[..., Any]


@pytest.mark.parametrize("arguments", [("backends",), ("backends", "list")])
def test_list(run: Run, url: str, control: FakeControl, arguments: tuple[str, ...]) -> None:
    backends = control.table.backends
    backends["vllm-a"].checked, backends["vllm-a"].outstanding = True, 4
    backends["vllm-a"].facts = EngineFacts(apis=frozenset({"messages", "chat"}))
    backends["vllm-b"].up = False
    backends["vllm-c"].enabled = False
    result = run(*arguments)
    assert result.status == 0
    lines = {line.split()[0]: line for line in result.out.splitlines()}
    assert "  up  " in lines["vllm-a"] and "4 of 256" in lines["vllm-a"]
    assert "chunk-512" in lines["vllm-a"] and "http://10.0.0.1:8001" in lines["vllm-a"]
    assert "  chat messages  " in lines["vllm-a"] and "  not known yet  " in lines["vllm-b"]
    assert "down" in lines["vllm-b"]
    assert "taken out" in lines["vllm-c"]


def test_a_terminal_of_80_columns_shows_addresses_whole(
    run: Run, url: str, control: FakeControl, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("gateway.cli.remote.sys.stdout.isatty", lambda: True)
    monkeypatch.setenv("COLUMNS", "80")
    for backend in control.table.backends.values():
        backend.checked = True
        backend.facts = EngineFacts(apis=frozenset(RELAYED_APIS))
    lines = run("backends").out.splitlines()
    assert len(lines) == 1 + len(control.table.backends)
    assert "  all  " in lines[1] and "http://10.0.0.1:8001" in lines[1]


def test_what_does_not_fit_goes_on_below(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("gateway.cli.remote.sys.stdout.isatty", lambda: True)
    monkeypatch.setenv("COLUMNS", "20")
    show_table(("NAME", "URL"), [("vllm-a", "http://10.0.0.1:8001/some/prefix")])
    out = capsys.readouterr().out
    assert "…" not in out
    assert "".join(line[8:].strip() for line in out.splitlines()[1:]) == (
        "http://10.0.0.1:8001/some/prefix"
    )


def test_an_open_circuit_shows(run: Run, url: str, control: FakeControl) -> None:
    for _ in range(5):
        control.table.backends["vllm-a"].circuit.failure()
    assert "circuit open" in run("backends").out


@pytest.mark.parametrize(
    ("served", "state"),
    [
        (("org/other", "x"), "up, but lacks its model (serves org/other)"),
        ((), "up, but lacks its model (serves none)"),
    ],
)
def test_an_engine_that_serves_another_model_is_not_just_up(
    run: Run, url: str, control: FakeControl, served: tuple[str, ...], state: str
) -> None:
    backend = control.table.backends["vllm-a"]
    backend.checked, backend.facts = True, EngineFacts(other_models=served)
    assert f"  {state}  " in run("backends").out
    view = json.loads(run("backends", "--json").out)[0]
    assert (view["up"], view["usable"], view["other_models"]) == (True, True, list(served))


def test_why_one_is_down_shows(run: Run, url: str, control: FakeControl) -> None:
    backend = control.table.backends["vllm-a"]
    backend.up, backend.trouble = False, "no answer by its proxy: 407"
    assert "down (health probes fail: no answer by its proxy: 407)" in run("backends").out


def test_list_in_json(run: Run, url: str) -> None:
    assert len(json.loads(run("backends", "--json").out)) == 3
    assert len(json.loads(run("backends", "list", "--json").out)) == 3


def test_out_and_in(run: Run, url: str, control: FakeControl) -> None:
    backend = control.table.backends["vllm-b"]
    backend.outstanding = 2
    result = run("backends", "out", "vllm-b")
    assert (result.status, backend.enabled) == (0, False)
    assert "vllm-b is out. Requests still running on it: 2." in result.out
    assert "Arm chunk-64 has no usable backend left" in result.err
    result = run("backends", "in", "vllm-b")
    assert (result.status, backend.enabled, result.err) == (0, True, "")
    assert "vllm-b is back" in result.out


def test_the_last_one_out_is_told(run: Run, url: str) -> None:
    result = run("backends", "out", "vllm-c")
    assert "org/small has no usable backend left" in result.err


def test_out_in_json(run: Run, url: str) -> None:
    assert json.loads(run("backends", "out", "vllm-b", "--json").out)["enabled"] is False
    assert json.loads(run("backends", "in", "vllm-b", "--json").out)["enabled"] is True


def test_an_unknown_one(run: Run, url: str) -> None:
    result = run("backends", "out", "vllm-z")
    assert (result.status, result.out) == (1, "")
    assert "`vllm-a`" in result.err


def test_wrong_usage(run: Run, url: str) -> None:
    assert run("backends", "out").status == 2
    assert run("backends", "away", "vllm-b").status == 2


def test_an_address_before_the_command_is_not_ignored(
    run: Run, url: str, control: FakeControl
) -> None:
    result = run("backends", "--url", "http://elsewhere.test", "out", "vllm-b")
    assert result.status == 2
    assert "after the command" in result.err
    assert control.switched == []


def test_an_engine_that_is_not_as_declared_is_told(
    run: Run, url: str, control: FakeControl
) -> None:
    backend = control.table.backends["vllm-a"]
    declared = EngineSettings(max_num_batched_tokens=512, block_size=16)
    backend.settings = backend.settings.model_copy(update={"engine": declared})
    backend.facts = EngineFacts(max_num_batched_tokens=2048, block_size=16)
    result = run("backends")
    assert result.status == 0
    assert result.err == (
        "vllm-a: max_num_batched_tokens is declared as 512, the engine runs 2048.\n"
    )


def test_times(run: Run, url: str, control: FakeControl) -> None:
    parts = TtftParts(60.0, 10, 10, 100.0, 5.0, 4.5, 20.0, None, 70.5, comparable=True)
    control.table.backends["vllm-a"].ttft_parts = parts
    result = run("backends", "times")
    assert (result.status, result.err) == (0, "")
    lines = {line.split()[0]: line.split() for line in result.out.splitlines()}
    assert lines["vllm-a"][1:] == ["chunk-512", "10", "100.0", "5.0", "4.5", "20.0", "-", "70.5"]
    assert lines["vllm-b"][1:] == ["chunk-64", "0", "-", "-", "-", "-", "-", "-"]
    answer = json.loads(run("backends", "times", "--json").out)
    assert answer["vllm-a"]["network_ms"] == 4.5 and answer["vllm-b"] is None


def test_times_before_an_engine_was_asked_say_when_there_will_be_some(run: Run, url: str) -> None:
    result = run("backends", "times")
    assert result.status == 0
    assert "each is asked every 15 seconds" in result.err


def test_a_rest_of_nothing_has_no_sign(run: Run, url: str, control: FakeControl) -> None:
    parts = TtftParts(60.0, 10, 10, 100.0, 5.0, 4.5, 20.0, 70.5, -0.01, comparable=True)
    control.table.backends["vllm-a"].ttft_parts = parts
    assert run("backends", "times").out.splitlines()[1].split()[-1] == "0.0"


def test_times_that_do_not_fit_together_are_told(run: Run, url: str, control: FakeControl) -> None:
    parts = TtftParts(60.0, 10, 25, 100.0, 5.0, 4.5, 20.0, 60.0, 10.5, comparable=False)
    control.table.backends["vllm-a"].ttft_parts = parts
    told = run("backends", "times").err
    assert "vllm-a: the gateway timed 10 first tokens, its engine counted 25" in told
