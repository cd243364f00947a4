from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio

from tests.support.simulated import Simulated, simulated


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A user's home without any file; the project lies in it."""
    home = tmp_path / "home"
    (home / "project").mkdir(parents=True)
    return home


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def shared(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Simulated]:
    async with simulated(tmp_path_factory.mktemp("gateway")) as shared:
        yield shared


@pytest_asyncio.fixture(loop_scope="module")
async def both(shared: Simulated) -> Simulated:
    """A gateway that serves `m`, alias `claude-*`, by one simulated engine; nothing asked yet.

    It is started once a module: a test that takes it runs on the module's event loop.
    """
    await shared.it.settle()
    shared.it.records.clear()
    return shared
