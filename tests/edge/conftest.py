from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from tests.support.impatient import impatient
from tests.support.loops import pytest_asyncio_loop_factories as pytest_asyncio_loop_factories
from tests.support.running import Running, Way
from tests.support.scripted import ScriptedBackend


@pytest.fixture(params=["protocol", "asgi"])
def way(request: pytest.FixtureRequest) -> Way:
    """Both writers of replies stand under the same tests."""
    value: Way = request.param
    return value


@pytest_asyncio.fixture(scope="module", loop_scope="module", params=["protocol", "asgi"])
async def shared(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[tuple[Running, ScriptedBackend]]:
    """A gateway and its backend, started once for all tests of a module."""
    way: Way = request.param
    async with impatient(tmp_path_factory.mktemp("site"), way) as both:
        yield both


@pytest_asyncio.fixture(loop_scope="module")
async def it(shared: tuple[Running, ScriptedBackend]) -> Running:
    """The shared gateway, with nothing remembered."""
    await shared[0].settle()
    shared[0].records.clear()
    shared[1].requests.clear()
    return shared[0]


@pytest.fixture
def backend(shared: tuple[Running, ScriptedBackend]) -> ScriptedBackend:
    return shared[1]
