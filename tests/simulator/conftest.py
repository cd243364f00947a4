from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from tests.simulator.running import Server, serving


@pytest.fixture
async def server() -> AsyncIterator[Server]:
    async with serving() as running:
        yield running
