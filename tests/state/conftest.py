"""A store on a fresh file."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from gateway.state.store import Store


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "gateway.db"


@pytest.fixture
def store(file: Path) -> Iterator[Store]:
    store = Store(f"sqlite:///{file}")
    store.open()
    yield store
    store.close()
