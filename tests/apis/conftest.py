"""A gateway before an engine that hurries, and one before an engine that does not."""

from __future__ import annotations

import secrets
from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from tests.support.running import Way
from tests.support.simulated import Simulated, simulated


@pytest_asyncio.fixture(scope="module", loop_scope="module", params=["protocol", "asgi"])
async def fast(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[Simulated]:
    """A gateway by either writer, before an engine a hundred times as fast as a real one."""
    way: Way = request.param
    async with simulated(tmp_path_factory.mktemp("fast"), way=way) as both:
        yield both


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def real(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Simulated]:
    """With an engine as fast as a real one: 9 ms a token, a prompt's token 74 µs."""
    engine = {"speed": 1.0, "answer_tokens": 10_000}
    async with simulated(tmp_path_factory.mktemp("real"), engine=engine) as both:
        yield both


@pytest.fixture
def site(fast: Simulated) -> Simulated:
    """The fast one, without the records of other tests."""
    fast.it.records.clear()
    return fast


@pytest.fixture
def steady(real: Simulated) -> Simulated:
    """The one at a real speed, without the records of other tests."""
    real.it.records.clear()
    return real


@pytest.fixture
def long_prompt() -> str:
    """About 1,600 tokens that no other test has sent, so that none of them is cached."""
    return secrets.token_hex(16) + " word" * 1280
