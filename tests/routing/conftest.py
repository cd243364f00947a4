"""Tables without a file, their arms given as {model: {arm: (weight, backends)}}; and a book."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

import pytest

from gateway.routing.table import Table
from gateway.settings import Settings
from tests.routing.books import Restart

Arms = Mapping[str, tuple[float, Sequence[str]]]


class Clock:
    """Monotonic seconds that pass when told to."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


class MakeTable(Protocol):
    def __call__(
        self,
        models: Mapping[str, Arms],
        *,
        previous: Table | None = None,
        backends: Mapping[str, Mapping[str, Any]] | None = None,
        per_model: Mapping[str, Mapping[str, Any]] | None = None,
        **model: Any,
    ) -> Table: ...


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def make_table(clock: Clock) -> MakeTable:
    """Builds a table; `backends` and `per_model` set what single ones need, `model` every model."""

    def make(
        models: Mapping[str, Arms],
        *,
        previous: Table | None = None,
        backends: Mapping[str, Mapping[str, Any]] | None = None,
        per_model: Mapping[str, Mapping[str, Any]] | None = None,
        **model: Any,
    ) -> Table:
        names = [n for arms in models.values() for _, ns in arms.values() for n in ns]
        tree = {
            "models": {
                name: {
                    "arms": {a: {"weight": w, "backends": list(ns)} for a, (w, ns) in arms.items()},
                    **model,
                    **(per_model or {}).get(name, {}),
                }
                for name, arms in models.items()
            },
            "backends": {
                name: {"url": f"http://{name}:8000", **(backends or {}).get(name, {})}
                for name in names
            },
        }
        return Table(Settings.model_validate(tree), clock, previous)

    return make


@pytest.fixture
def restart(tmp_path: Path) -> Iterator[Restart]:
    restart = Restart(f"sqlite:///{tmp_path}/gateway.db")
    yield restart
    restart.close()
