"""Books of weights that are opened on one database, again and again."""

from __future__ import annotations

from collections.abc import Mapping

from gateway.routing.weights import WeightBook
from gateway.settings import Model
from gateway.state.store import Store

Arms = Mapping[str, float]

HALF = {"a": 50.0, "b": 50.0}


def models(**arms: Arms) -> dict[str, Model]:
    """Models of a file, given as model=arms and their weights."""
    return {
        model: Model.model_validate(
            {"arms": {name: {"weight": w, "backends": [f"be-{name}"]} for name, w in each.items()}}
        )
        for model, each in arms.items()
    }


class Restart:
    """Opens the same database again and again, as a process that starts does."""

    def __init__(self, url: str) -> None:
        self._url = url
        self._store: Store | None = None
        self.now = 1_700_000_000.0

    def __call__(self, files: Mapping[str, Model]) -> WeightBook:
        self.close()
        self.store = self._store = Store(self._url)
        self.store.open()
        book = WeightBook(self.store, lambda: self.now)
        book.follow(files)
        return book

    def close(self) -> None:
        if self._store is not None:
            self._store.close()


def effective(book: WeightBook) -> dict[str, float]:
    return book.of("m").effective
