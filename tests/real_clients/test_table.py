"""What the documentation says was driven is what was driven. The last file of a run."""

from __future__ import annotations

import json

import pytest

from tests.real_clients.agents import ClaudeCode, Cline, Codex, OpenCode, Qwen
from tests.real_clients.driving import Case, Lab, Runs
from tests.real_clients.installing import LOCK, versions
from tests.real_clients.table import PAGE, heading, page


@pytest.mark.clients
def test_documentation_says_what_was_driven(runs: Runs, pytestconfig: pytest.Config) -> None:
    failed = [case.scenario for case in runs.tasks if case not in runs.requests]
    assert not failed, "only a run in which everything passed can be written up"
    wanted = page(runs.requests, versions())
    if pytestconfig.getoption("--write"):
        PAGE.write_text(wanted)
    assert PAGE.read_text() == wanted, "write it anew: make test-clients ARGS=--write"


def test_documentation_names_the_pinned_versions() -> None:
    said = PAGE.read_text()
    for agent in (ClaudeCode(), Cline(), Codex(), OpenCode(), Qwen()):
        assert heading(agent, versions()[agent.package]) in said


def test_page_says_which_faults_an_agent_was_not_driven_through() -> None:
    async def play(lab: Lab) -> None: ...

    claude, codex, cline = ClaudeCode(), Codex(), Cline()
    driven = [
        Case(claude, "a fault", "native", play, False),
        Case(codex, "a fault: the first 60 s", "native", play, True),
        Case(codex, "a fault of its own", "native", play, False),
        Case(cline, "a plain answer", "native", play, False),
    ]
    said = page(dict.fromkeys(driven, 1), versions())
    table = said[said.index("### Cline") :]
    assert table.index("\nNot driven: a fault.\n") < table.index("### Codex")
    assert said.count("Not driven") == 1


def test_lock_holds_the_pinned_versions_and_no_address_of_an_index() -> None:
    packages = json.loads(LOCK.read_text())["packages"]
    for name, version in versions().items():
        assert packages[f"node_modules/{name}"]["version"] == version
    assert not [name for name, one in packages.items() if "resolved" in one]
