"""Two gateways for the SDKs: one before a simulated engine, one before scripted backends."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Iterator

import pytest
import pytest_asyncio
from anthropic import Anthropic, AsyncAnthropic
from openai import AsyncOpenAI, OpenAI

from tests.sdks.clients import NARROW_KEY, SLOW_KEY, Clients
from tests.support.running import KEY
from tests.support.simulated import simulated
from tests.support.site import Site, site


@pytest.fixture(scope="module")
def no_environment() -> Iterator[None]:
    """No proxy, and nothing else the SDKs would take from the environment."""
    with pytest.MonkeyPatch.context() as patch:
        for name in list(os.environ):
            if name.lower().endswith("_proxy") or name.startswith(("OPENAI_", "ANTHROPIC_")):
                patch.delenv(name)
        yield


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def everything(
    no_environment: None, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[Clients]:
    keys = [
        {"name": "dev", "key": KEY},
        {"name": "narrow", "key": NARROW_KEY, "models": ["m"]},
        {"name": "slow", "key": SLOW_KEY, "requests_per_minute": 1},
    ]
    path = tmp_path_factory.mktemp("sdks")
    async with simulated(path, also=["other"], keys=keys) as both:
        url = both.it.url
        with (
            OpenAI(base_url=f"{url}/v1", api_key=KEY, max_retries=0) as one,
            Anthropic(base_url=url, api_key=KEY, max_retries=0) as three,
        ):
            async with (
                AsyncOpenAI(base_url=f"{url}/v1", api_key=KEY, max_retries=0) as two,
                AsyncAnthropic(base_url=url, api_key=KEY, max_retries=0) as four,
            ):
                yield Clients(both, one, two, three, four)


@pytest.fixture
def clients(everything: Clients) -> Clients:
    """All clients of the gateway before a simulated engine, with nothing recorded."""
    everything.both.it.records.clear()
    return everything


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def shared(
    no_environment: None, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[Site]:
    async with site(tmp_path_factory.mktemp("sdks"), "protocol") as one:
        yield one


@pytest_asyncio.fixture(loop_scope="module")
async def at(shared: Site) -> Site:
    """The gateway before scripted backends, for what a simulated engine does not do."""
    await shared.it.settle()
    shared.reset()
    return shared
