"""A clock that passes when told to."""

from __future__ import annotations

import pytest


class Clock:
    """Monotonic seconds; starts where a machine that has run for weeks would be."""

    def __init__(self) -> None:
        self.now = 3_000_000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()
