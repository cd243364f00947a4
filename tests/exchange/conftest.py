from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from tests.support.loops import pytest_asyncio_loop_factories as pytest_asyncio_loop_factories
from tests.support.running import Way
from tests.support.site import Site, site


@pytest_asyncio.fixture(scope="module", loop_scope="module", params=["protocol", "asgi"])
async def shared(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[Site]:
    """Both writers of replies stand under the same tests."""
    way: Way = request.param
    async with site(tmp_path_factory.mktemp("site"), way) as it:
        yield it


@pytest_asyncio.fixture(loop_scope="module")
async def at(shared: Site) -> Site:
    """The gateway of this module, with its own configuration and nothing remembered."""
    await shared.it.settle()
    shared.reset()
    return shared
