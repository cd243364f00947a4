"""Two real engines, started once for all tests of a run, and the gateway before them."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator, Mapping

import pytest
import pytest_asyncio

from benchmarks.engine.install import installed, lacking
from benchmarks.engine.serving import Launch, serving
from tests.real_engine.lab import ARMS, BUDGETS, ENGINE_KEY, Arm, Lab, lab

LAUNCHES = [
    Launch(BUDGETS["a"], developer=True),
    Launch(BUDGETS["b"], developer=True, api_key=ENGINE_KEY),
]


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--engines",
        nargs=2,
        metavar=("URL64", "URL512"),
        help="two engines that run already, started as this folder's conftest.py does",
    )


@pytest.fixture(scope="session")
def urls(
    pytestconfig: pytest.Config, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Mapping[Arm, str]]:
    """Where the engine of each arm listens."""
    given = pytestconfig.getoption("--engines", None)
    if given:
        yield dict(zip(ARMS, given, strict=True))
        return
    reason = lacking()
    if reason:
        pytest.skip(reason)
    with serving(installed(), tmp_path_factory.mktemp("engines"), LAUNCHES) as engines:
        yield {arm: one.url for arm, one in zip(ARMS, engines, strict=True)}


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def site(
    urls: Mapping[Arm, str], tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[Lab]:
    async with lab(tmp_path_factory.mktemp("gateway"), urls) as it:
        yield it
