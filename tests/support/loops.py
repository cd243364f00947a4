"""The event loop of `gateway serve`, for tests of what runs on it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import uvloop


def pytest_asyncio_loop_factories() -> dict[str, Callable[[], asyncio.AbstractEventLoop]]:
    """pytest-asyncio asks the `conftest.py` of a folder for it: import it there."""
    return {"uvloop": uvloop.new_event_loop}
