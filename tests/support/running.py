"""A whole gateway on a real socket within the test's own event loop."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, Literal

import httpx
import uvicorn

from gateway.app import Gateway, create_app
from gateway.edge.protocol import GatewayProtocol
from gateway.records import Record
from gateway.settings import Settings
from tests.support.served import served

KEY = "sk-test-0123456789abcdefghijkl"
ADMIN_KEY = "sk-admin-0123456789abcdefghij"

Way = Literal["protocol", "asgi"]


@dataclass
class Running:
    """A gateway that listens.

    Attributes:
        records: of the exchanges that are over, in order.
    """

    gateway: Gateway
    port: int
    client: httpx.AsyncClient
    server: uvicorn.Server
    records: list[Record] = field(default_factory=list)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    async def settle(self) -> None:
        """Wait until every request is over, and recorded, that an earlier test has left."""
        async with asyncio.timeout(5):
            while self.server.server_state.tasks:
                await asyncio.sleep(0.002)

    async def record(self, number: int = 1) -> Record:
        """The latest record, once `number` exchanges are over."""
        async with asyncio.timeout(5):
            while len(self.records) < number:
                await asyncio.sleep(0.005)
        return self.records[-1]


def configuration(tmp_path: Path, *urls: str, **changes: Any) -> dict[str, Any]:
    """One model `m`, one arm a backend (`a0`, `a1`, …) at the given addresses, one key."""
    settings: dict[str, Any] = {
        "server": {"port": 0, "drain_delay": 0},
        "models": {
            "m": {"arms": {f"a{n}": {"weight": 1, "backends": [f"b{n}"]} for n in range(len(urls))}}
        },
        "backends": {f"b{n}": {"url": url} for n, url in enumerate(urls)},
        "keys": [{"name": "dev", "key": KEY}],
        "admin": {"key": ADMIN_KEY},
        "database_url": f"sqlite:///{tmp_path}/gateway.db",
    }
    return settings | changes


@asynccontextmanager
async def running(
    configuration: dict[str, Any],
    tmp_path: Path,
    *,
    way: Way = "protocol",
    prepare: Callable[[Gateway], None] = lambda gateway: None,
) -> AsyncIterator[Running]:
    """Start a gateway and stop it again.

    Args:
        way: hot routes inside the HTTP protocol class, or by plain ASGI.
    """
    gateway = Gateway(Settings.model_validate(configuration), tmp_path / "access.jsonl")
    prepare(gateway)

    async def unchanged() -> Settings:
        return gateway.context.settings

    protocol: Any = partial(GatewayProtocol, gateway.context, gateway.paths)
    config = uvicorn.Config(
        create_app(gateway, unchanged),
        http=protocol if way == "protocol" else "httptools",
        ws="none",
        lifespan="on",
        log_config=None,
        access_log=False,
    )
    headers = {"authorization": f"Bearer {KEY}"}
    async with served(config) as (server, port):
        base = f"http://127.0.0.1:{port}"
        # Nothing here is TLS, and reading the certificates takes longer than most tests.
        async with httpx.AsyncClient(
            base_url=base, headers=headers, trust_env=False, verify=False
        ) as client:
            result = Running(gateway, port, client, server)
            record = gateway.context.record

            def note(one: Record) -> None:
                record(one)
                result.records.append(one)

            gateway.context.record = note
            yield result
