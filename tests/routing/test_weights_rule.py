"""The one-owner rule under random histories of files, overrides and restarts."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from gateway.errors import BadRequest
from gateway.routing.weights import WeightBook
from gateway.settings import Model
from gateway.state.store import WeightChange, WeightUpdate


def models(arms: dict[str, float]) -> dict[str, Model]:
    each = {name: {"weight": weight, "backends": ["be"]} for name, weight in arms.items()}
    return {"m": Model.model_validate({"arms": each})}


names = st.sampled_from(["a", "b", "c"])
values = st.sampled_from([0.0, 1.0, 2.0, 50.0])
files = st.dictionaries(names, values, min_size=1).filter(lambda arms: any(arms.values()))


class OneOwner(RuleBasedStateMachine):
    """Files, overrides and restarts in any order, against the rule in its plainest words."""

    def __init__(self) -> None:
        super().__init__()
        self.store = MemoryStore()
        self.overrides: dict[str, tuple[float, float]] = {}
        self.shown: list[dict[str, float]] = []

    @initialize(file=files)
    def start(self, file: dict[str, float]) -> None:
        self.file = file
        self.book = WeightBook(self.store, lambda: 0.0)  # type: ignore[arg-type]  # what weights use of one
        self.book.follow(models(file))

    @rule(file=files)
    def edit(self, file: dict[str, float]) -> None:
        self.file = file
        self.book.follow(models(file))

    @rule(file=files)
    def edit_while_down(self, file: dict[str, float]) -> None:
        self.start(file)

    @rule(asked=st.dictionaries(names, values, min_size=1))
    def override(self, asked: dict[str, float]) -> None:
        now = self.book.of("m").effective
        if not asked.keys() <= now.keys() or not any({**now, **asked}.values()):
            with pytest.raises(BadRequest):
                self.book.set("m", asked, None, "", "me")
        else:
            self.book.set("m", asked, None, "", "me")
            self.overrides |= {arm: (weight, self.file[arm]) for arm, weight in asked.items()}

    @invariant()
    def the_rule_holds(self) -> None:
        if not hasattr(self, "book"):
            return
        file = self.file
        self.overrides = {
            arm: (weight, against)
            for arm, (weight, against) in self.overrides.items()
            if file.get(arm) == against
        }
        expected = {arm: self.overrides.get(arm, (file[arm],))[0] for arm in file}
        if not any(expected.values()):
            self.overrides, expected = {}, file
        assert self.book.of("m").effective == expected
        if self.shown[-1:] != [expected]:
            self.shown.append(dict(expected))
        assert self.book.of("m").revision == len(self.shown)
        assert [one.after for one in reversed(self.book.history("m", 10_000))] == self.shown


class MemoryStore:
    """The part of the store a book needs, for many short histories."""

    def __init__(self) -> None:
        self._overrides: dict[str, Any] = {}
        self._changes: list[WeightChange] = []

    def overrides(self) -> dict[str, Any]:
        return dict(self._overrides)

    def latest_changes(self) -> dict[str, WeightChange]:
        return {change.model: change for change in self._changes}

    def save_weights(self, updates: list[WeightUpdate]) -> None:
        for update in updates:
            self._overrides[update.model] = update.overrides
            if update.change is not None:
                self._changes.append(update.change)

    def history(self, model: str, limit: int) -> list[WeightChange]:
        return self._changes[::-1]


TestOneOwner = OneOwner.TestCase
TestOneOwner.settings = settings(max_examples=80, stateful_step_count=25, deadline=None)
