"""Real coding agents: installed once a run, and every scenario of the run started at once."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.real_clients.driving import Case, Runs, played
from tests.real_clients.harness import end_all
from tests.real_clients.installing import installed, lacking


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--write", action="store_true", help="write what was driven into docs/clients.md"
    )


@pytest.fixture(scope="session")
def runs(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Runs]:
    """The cases of all tests that were selected."""
    reason = lacking()
    if reason:
        pytest.skip(reason)
    wanted = [case for item in request.session.items if (case := _case(item)) is not None]
    folder = tmp_path_factory.mktemp("agents")
    try:
        with played(wanted, installed(), folder) as started:
            yield started
    finally:
        end_all(folder)


def _case(item: pytest.Item) -> Case | None:
    callspec = getattr(item, "callspec", None)
    case = callspec.params.get("case") if callspec else None
    return case if isinstance(case, Case) else None
