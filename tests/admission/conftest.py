"""Backends and picks without a table."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from gateway.routing.backend import Backend
from gateway.routing.circuit import Circuit
from gateway.settings import BackendSettings


class Clock:
    """Monotonic seconds that pass when told to."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


MakeBackend = Callable[[str, int], Backend]


@pytest.fixture
def make_backend(clock: Clock) -> MakeBackend:
    def make(name: str, places: int) -> Backend:
        settings = BackendSettings(url=f"http://{name}:8000", max_concurrency=places)
        return Backend(name, settings.url, None, "arm", "model", settings, Circuit(clock))

    return make


class Wish:
    """What a request would take: the first of these backends with a place."""

    def __init__(self, *backends: Backend) -> None:
        self.backends = backends
        self.asked = 0

    def pick(self) -> Backend | None:
        self.asked += 1
        return next((backend for backend in self.backends if backend.claim()), None)

    def why_not(self) -> str | None:
        return None if any(backend.usable() for backend in self.backends) else "all are down"
