"""A routing table of two models, finished exchanges to observe, and a scrape read back."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from types import SimpleNamespace
from typing import Any

import pytest
from prometheus_client import CollectorRegistry
from prometheus_client.parser import text_string_to_metric_families

from gateway.keys.keyring import Key
from gateway.records import Api, EngineFacts, Outcome, Record, Timeline, Usage
from gateway.settings import BackendSettings, Model
from gateway.telemetry.metrics import Metrics

# A request whose body took 10 ms, that waited 20 ms, was sent 5 ms later, and answered with
# headers after 35, a first byte after 40 and a first token after 300 ms.
MARKS: dict[str, float | None] = {
    "received": 100.0,
    "body_complete": 100.010,
    "admitted": 100.030,
    "sent": 100.035,
    "upstream_headers": 100.070,
    "first_byte": 100.075,
    "first_token": 100.335,
    "last_token": 100.385,
    "done": 100.400,
}
FAILED = {"first_byte": None, "first_token": None, "last_token": None}
"""Marks of the same when nothing came of it."""

SERVED = {"model": "llama", "arm": "chunk-512", "backend": "vllm-a"}
"""Labels of whoever serves it."""


def _add(table: Any, model: str, slo_ttft_ms: float | None, arms: dict[str, str]) -> None:
    settings = Model.model_validate(
        {
            "experiment": {"slo_ttft_ms": slo_ttft_ms},
            "arms": {arm: {"weight": 50, "backends": [name]} for arm, name in arms.items()},
        }
    )
    weights = dict.fromkeys(arms, 50.0)
    table.routes[model] = SimpleNamespace(model=model, settings=settings, weights=weights)
    for arm, name in arms.items():
        engine = {"max_num_batched_tokens": 512, "block_size": 16, "prefix_caching": True}
        backend = BackendSettings.model_validate({"url": f"http://{name}.test", "engine": engine})
        table.backends[name] = SimpleNamespace(
            name=name,
            model=model,
            arm=arm,
            settings=backend,
            up=True,
            outstanding=0,
            facts=EngineFacts("0.32.0", 8192),
        )


@pytest.fixture
def table() -> Any:
    """llama: vllm-a and vllm-b in an arm each, objective 500 ms; qwen: vllm-c, no objective."""
    table = SimpleNamespace(routes={}, backends={})
    _add(table, "llama", 500, {"chunk-512": "vllm-a", "chunk-64": "vllm-b"})
    _add(table, "qwen", None, {"only": "vllm-c"})
    return table


@pytest.fixture
def keys() -> list[Key]:
    """dev may use everything without limits; ci may use qwen alone, within limits."""
    limited = Key("2", "ci", ("qwen",), requests_per_minute=60, max_concurrency=4)
    return [Key("1", "dev"), limited]


@pytest.fixture
def metrics(table: Any, keys: list[Key]) -> Metrics:
    metrics = Metrics(CollectorRegistry())
    metrics.use(table, keys)
    return metrics


@pytest.fixture
def streamed() -> Callable[..., Record]:
    """A streamed chat request that went well; keywords replace facts, `marks` some of its marks."""

    def make(*, marks: dict[str, Any] | None = None, **changes: Any) -> Record:
        facts: dict[str, Any] = {
            "id": "req-1",
            "at": 1_700_000_000.25,
            "timeline": Timeline(**{**MARKS, **(marks or {})}),
            "api": Api.CHAT,
            "path": "/v1/chat/completions",
            "status": 200,
            "outcome": Outcome.OK,
            "stream": True,
            "key": "dev",
            "model": "llama",
            "assigned_arm": "chunk-512",
            "arm": "chunk-512",
            "backend": "vllm-a",
            "usage": Usage(prompt=1600, cached=1024, completion=40),
            "gaps": (0.02, 0.03),
        }
        return Record(**{**facts, **changes})

    return make


@pytest.fixture
def scrape() -> Callable[[Metrics], Awaitable[Callable[..., float | None]]]:
    """Renders, parses with prometheus_client, and gives `read(name, **labels)`.

    `read` gives the value of the one series with exactly these labels, None if there is none.
    """

    async def scrape(metrics: Metrics) -> Callable[..., float | None]:
        text = b"".join([part async for part in metrics.render()]).decode()
        values = {
            (sample.name, frozenset(sample.labels.items())): sample.value
            for family in text_string_to_metric_families(text)
            for sample in family.samples
        }
        return lambda name, **labels: values.get((name, frozenset(labels.items())))

    return scrape
