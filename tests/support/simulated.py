"""A whole gateway with a simulated engine behind it, as clients meet the two."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from prometheus_client.parser import text_string_to_metric_families

from tests.simulator.running import Server, serving
from tests.support.running import Running, Way, configuration, running

UPSTREAM = "org/engine-name"
"""What the engine calls its model; clients call it `m` or an alias and never see this."""


@dataclass
class Simulated:
    """A gateway and its engine."""

    it: Running
    engine: Server


class Totals:
    """The samples of both `/metrics` pages at one moment, or what was added between two."""

    def __init__(self, values: dict[tuple[str, frozenset[tuple[str, str]]], float]) -> None:
        self._values = values

    def __getitem__(self, name: str) -> float:
        """The sum of the samples of this name."""
        return self.labelled(name)

    def labelled(self, name: str, **labels: str) -> float:
        """The sum of those that have these labels."""
        wanted = labels.items()
        found = [v for (n, has), v in self._values.items() if n == name and wanted <= has]
        return sum(found)

    def __sub__(self, earlier: Totals) -> Totals:
        before = earlier._values
        return Totals({key: value - before.get(key, 0) for key, value in self._values.items()})


async def totals(both: Simulated) -> Totals:
    """What gateway (`gateway_…`) and engine (`vllm:…`) have counted so far."""
    pages = [(await client.get("/metrics")).text for client in (both.it.client, both.engine.client)]
    return counted(*pages)


def counted(*pages: str) -> Totals:
    """The samples of these `/metrics` pages."""
    return Totals(
        {
            (sample.name, frozenset(sample.labels.items())): sample.value
            for page in pages
            for family in text_string_to_metric_families(page)
            for sample in family.samples
        }
    )


@asynccontextmanager
async def simulated(
    tmp_path: Path,
    *,
    way: Way = "protocol",
    engine: dict[str, Any] | None = None,
    also: Sequence[str] = (),
    **changes: Any,
) -> AsyncIterator[Simulated]:
    """Model `m`, alias `gpt-*` and `claude-*`, on one simulated engine.

    Args:
        engine: fields of the engine's configuration.
        also: names of further models, each with an arm and a backend of its name, on that engine.
        changes: sections of the gateway's configuration.
    """
    async with serving(model=UPSTREAM, **(engine or {})) as server:
        settings = configuration(tmp_path, server.url, **changes)
        settings["models"]["m"] |= {"upstream_model": UPSTREAM, "aliases": ["gpt-*", "claude-*"]}
        for name in also:
            arms = {name: {"weight": 1, "backends": [name]}}
            settings["models"][name] = {"upstream_model": UPSTREAM, "arms": arms}
            settings["backends"][name] = {"url": server.url}
        async with running(settings, tmp_path, way=way) as it:
            yield Simulated(it, server)
