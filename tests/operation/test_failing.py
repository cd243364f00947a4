"""Backends that die or fail while a gateway runs: who notices, where requests go, the way back."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from dataclasses import dataclass

import pytest
import pytest_asyncio

from tests.operation.engine import Engine
from tests.operation.oracle import Oracle
from tests.support.gateway_process import KEY, Process, serving, settings
from tests.support.scripted import ScriptedBackend, scripted

pytestmark = pytest.mark.asyncio(loop_scope="module")


@dataclass
class Site:
    it: Process
    engines: dict[str, Engine]
    ports: dict[str, int]
    mortal: AsyncExitStack

    async def up(self) -> str:
        """What `/metrics` says of b1."""
        page = (await self.it.client.get("/metrics")).text
        (line,) = [
            one for one in page.splitlines() if one.startswith('gateway_backend_up{backend="b1"')
        ]
        return line[-1]

    async def usable(self) -> int:
        ready = await self.it.client.get("/ready")
        assert ready.status_code == 200, "the process can serve, whatever its backends do"
        return int(ready.json()["models"]["m"]["arms"]["b"]["usable"])

    async def state(self) -> str:
        """What `gateway backends` says of b1."""
        _, said = await self.it.command("backends")
        (row,) = [line for line in said.splitlines() if line.startswith("b1")]
        return row


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def site(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Site]:
    folder = tmp_path_factory.mktemp("failing")
    async with AsyncExitStack() as stack:
        engines = {"a1": Engine("a1"), "b1": Engine("b1")}
        mortal = await stack.enter_async_context(AsyncExitStack())
        a1 = await stack.enter_async_context(scripted(engines["a1"]))
        b1 = await mortal.enter_async_context(scripted(engines["b1"]))
        content = settings(folder, a1.url, b1.url)
        it = await stack.enter_async_context(serving(folder, content))
        yield Site(it, engines, {"b1": b1.port}, mortal)


def sessions_of_b() -> list[str]:
    oracle = Oracle(KEY, "m", "chunk", {"a": 50, "b": 50})
    return [name for name in map(str, range(60)) if oracle.arm(name) == "b"]


async def test_a_circuit_opens_on_failures_and_finds_its_way_back(site: Site) -> None:
    """It answers its probes and fails every request: only the circuit can tell."""
    engine = site.engines["b1"]
    engine.broken = True
    for name in sessions_of_b()[:9]:
        answer = await site.it.ask(name)
        assert (answer.status_code, answer.headers["x-gateway-arm"]) == (200, "a")
    assert len(engine.asked) == 5, "the circuit opens on the fifth failure in a row"
    assert await site.usable() == 0
    assert await site.up() == "1", "its probes succeed"
    assert "circuit open (requests fail)" in await site.state()
    engine.broken = False

    async def back() -> bool:
        return (await site.it.ask(sessions_of_b()[0])).headers["x-gateway-arm"] == "b"

    await site.it.eventually(10, back)
    assert len(engine.asked) == 6
    assert await site.usable() == 1
    page = (await site.it.client.get("/metrics")).text
    failovers = 'gateway_failovers_total{model="m",assigned_arm="b",served_arm="a"} '
    assert int(page.partition(failovers)[2].split()[0]) >= 9


async def test_a_backend_that_dies_is_left_and_found_again(site: Site) -> None:
    session = sessions_of_b()[0]
    await site.mortal.aclose()
    answer = await site.it.ask(session)
    assert (answer.status_code, answer.headers["x-gateway-arm"]) == (200, "a"), "at once"

    async def down() -> bool:
        return await site.up() == "0"

    await site.it.eventually(8, down)
    assert await site.usable() == 0
    assert "down (health probes fail: no answer" in await site.state()
    assert "backend b1 is down" in site.it.said
    server = await asyncio.start_server(
        ScriptedBackend(site.engines["b1"]).serve, "127.0.0.1", site.ports["b1"]
    )
    async with server:

        async def found() -> bool:
            return await site.up() == "1" and await site.usable() == 1

        await site.it.eventually(8, found)
        assert (await site.it.ask(session)).headers["x-gateway-arm"] == "b"
    (line,) = [one for one in site.it.lines if one["id"] == answer.headers["x-request-id"]]
    assert (line["assigned_arm"], line["arm"], line["tried"]) == ("b", "a", ["b1"])
    assert "b1: cannot connect" in line["detail"]
