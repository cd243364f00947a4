"""Gauges read from the routing table at the moment of a scrape.

Nothing is kept here, so a backend that a reload removed is gone from the next scrape.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Protocol

from gateway.records import EngineFacts
from gateway.settings import BackendSettings, EngineSettings, Model
from gateway.telemetry.series import head, labels_text


class LiveBackend(Protocol):
    """What the gauges read of one server."""

    @property
    def name(self) -> str: ...
    @property
    def model(self) -> str: ...
    @property
    def arm(self) -> str: ...
    @property
    def up(self) -> bool: ...
    @property
    def outstanding(self) -> int: ...
    @property
    def settings(self) -> BackendSettings: ...
    @property
    def facts(self) -> EngineFacts | None: ...


class LiveRoute(Protocol):
    """What the metrics read of one model: its arms, and the weights in force by arm."""

    @property
    def model(self) -> str: ...
    @property
    def settings(self) -> Model: ...
    @property
    def weights(self) -> Mapping[str, float]: ...


class LiveTable(Protocol):
    """The routing table in force."""

    @property
    def routes(self) -> Mapping[str, LiveRoute]: ...
    @property
    def backends(self) -> Mapping[str, LiveBackend]: ...


INFO_LABELS = (
    *("backend", "arm", "model"),
    *("max_num_batched_tokens", "block_size", "prefix_caching", "engine_version"),
)


def pieces(table: LiveTable) -> Iterator[str]:
    """The gauges in the text format, one metric at a time."""
    backends = table.backends.values()
    yield _gauge(
        "gateway_requests_in_flight",
        "Requests a backend is answering now.",
        ((labels_text(("backend",), (b.name,)), b.outstanding) for b in backends),
    )
    yield _gauge(
        "gateway_backend_up",
        "1 while the backend's health probes succeed.",
        ((labels_text(("backend",), (b.name,)), int(b.up)) for b in backends),
    )
    yield _gauge(
        "gateway_arm_weight",
        "Weight of the arm in its model's split, as in force now.",
        (
            (labels_text(("model", "arm"), (route.model, arm)), weight)
            for route in table.routes.values()
            for arm, weight in route.weights.items()
        ),
    )
    yield _gauge(
        "gateway_backend_info",
        "1; the labels say which engine configuration the backend runs, as its engine tells or, "
        "where it does not, as it is declared.",
        ((labels_text(INFO_LABELS, _info(b)), 1) for b in backends),
    )


def _gauge(name: str, help_text: str, series: Iterable[tuple[str, float]]) -> str:
    lines = (f"{name}{{{labels}}} {value}\n" for labels, value in series)
    return head(name, "gauge", help_text) + "".join(lines)


def _info(backend: LiveBackend) -> tuple[str, ...]:
    """The labels: what the engine runs, where it tells, else what it is declared to run."""
    facts, engine = backend.facts or EngineFacts(), backend.settings.engine or EngineSettings()
    told: tuple[int | bool | None, ...] = (
        _first(facts.max_num_batched_tokens, engine.max_num_batched_tokens),
        _first(facts.block_size, engine.block_size),
        _first(facts.prefix_caching, engine.prefix_caching),
    )
    return (backend.name, backend.arm, backend.model, *map(_label, told), facts.version)


def _first(told: int | None, declared: int | None) -> int | None:
    return declared if told is None else told


def _label(fact: int | bool | None) -> str:
    return "" if fact is None else str(fact).lower()
