"""One owner of the weights at a time: the file, an override while the file says the same."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from gateway.errors import BadRequest, ConfigError, Conflict, NotFound
from gateway.routing.weights import WeightBook
from gateway.settings import Model
from gateway.state.store import Store, WeightChange, WeightUpdate

Arms = Mapping[str, float]


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


@pytest.fixture
def restart(tmp_path: Path) -> Iterator[Restart]:
    restart = Restart(f"sqlite:///{tmp_path}/gateway.db")
    yield restart
    restart.close()


HALF = {"a": 50.0, "b": 50.0}


def effective(book: WeightBook) -> dict[str, float]:
    return book.of("m").effective


def test_the_file_counts_while_nobody_said_otherwise(restart: Restart) -> None:
    book = restart(models(m=HALF, n={"x": 1}))
    assert effective(book) == book.of("m").baseline == HALF
    assert book.of("m").overrides == {}
    assert book.of("m").revision == book.of("n").revision == 1
    assert book.history("m") == [
        WeightChange("m", 1, restart.now, "file", "the model came into the file", {}, HALF)
    ]


def test_an_override_is_in_force_at_once_and_after_a_restart(restart: Restart) -> None:
    book = restart(models(m=HALF))
    restart.now += 60
    assert book.set("m", {"b": 10}, 1, "looks slow", "ann") == 2
    assert effective(book) == {"a": 50.0, "b": 10.0}
    again = restart(models(m=HALF))
    assert again.of("m") == book.of("m")
    override = again.of("m").overrides["b"]
    assert (override.by, override.reason, override.at) == ("ann", "looks slow", restart.now)
    assert (override.weight, override.baseline, override.revision) == (10.0, 50.0, 2)
    assert list(again.of("m").overrides) == ["b"]
    assert again.history("m")[0] == WeightChange(
        "m", 2, restart.now, "ann", "looks slow", HALF, {"a": 50.0, "b": 10.0}
    )


def test_a_restart_or_reload_without_a_change_is_none(restart: Restart) -> None:
    book = restart(models(m=HALF))
    book.set("m", {"a": 1}, None, "", "ann")
    book = restart(models(m=HALF))
    book.follow(models(m=HALF))
    assert book.of("m").revision == 2
    assert len(book.history("m")) == 2


def test_arms_that_are_not_named_keep_their_weights(restart: Restart) -> None:
    book = restart(models(m={"a": 1, "b": 2, "c": 3}))
    book.set("m", {"a": 5}, None, "", "ann")
    book.set("m", {"c": 7}, None, "", "bob")
    assert effective(book) == {"a": 5.0, "b": 2.0, "c": 7.0}
    assert {arm: one.by for arm, one in book.of("m").overrides.items()} == {"a": "ann", "c": "bob"}


@pytest.mark.parametrize("while_down", [False, True])
class TestTheFileChanges:
    """With the gateway running, and while it is down."""

    @pytest.fixture
    def change(
        self, restart: Restart, while_down: bool
    ) -> Callable[[WeightBook, Arms], WeightBook]:
        def change(book: WeightBook, arms: Arms) -> WeightBook:
            if while_down:
                return restart(models(m=arms))
            book.follow(models(m=arms))
            return book

        return change

    def test_only_arms_whose_weight_changed_follow_the_file(
        self, restart: Restart, change: Callable[[WeightBook, Arms], WeightBook]
    ) -> None:
        book = restart(models(m={"a": 10, "b": 20, "c": 30}))
        book.set("m", {"a": 1, "b": 2}, None, "", "ann")
        book = change(book, {"a": 10, "b": 25, "c": 35})
        assert effective(book) == {"a": 1.0, "b": 25.0, "c": 35.0}
        assert list(book.of("m").overrides) == ["a"]
        last = book.history("m")[0]
        assert (last.revision, last.by) == (3, "file")
        assert last.reason == "the file changed; overrides dropped: b"
        assert last.before == {"a": 1.0, "b": 2.0, "c": 30.0}
        assert last.after == effective(book)

    def test_a_dropped_override_does_not_come_back_with_the_old_file(
        self, restart: Restart, change: Callable[[WeightBook, Arms], WeightBook]
    ) -> None:
        book = restart(models(m=HALF))
        book.set("m", {"a": 1}, None, "", "ann")
        book = change(book, {"a": 60, "b": 50})
        book = change(book, HALF)
        assert effective(book) == HALF
        assert book.of("m").overrides == {}

    def test_the_file_may_come_to_say_what_the_override_said(
        self, restart: Restart, change: Callable[[WeightBook, Arms], WeightBook]
    ) -> None:
        book = restart(models(m=HALF))
        book.set("m", {"a": 1}, None, "", "ann")
        book = change(book, {"a": 1, "b": 50})
        assert effective(book) == {"a": 1.0, "b": 50.0}
        assert book.of("m").overrides == {}
        assert book.of("m").revision == 2  # the weights in force did not change
        book = change(book, HALF)
        assert effective(book) == HALF

    def test_arms_come_and_go(
        self, restart: Restart, change: Callable[[WeightBook, Arms], WeightBook]
    ) -> None:
        book = restart(models(m=HALF))
        book.set("m", {"a": 7, "b": 8}, None, "", "ann")
        book = change(book, {"c": 30, "b": 50})
        assert effective(book) == {"c": 30.0, "b": 8.0}
        assert book.history("m")[0].reason == "the file changed; overrides dropped: a"
        book = change(book, {"a": 50, "b": 50})
        assert effective(book) == {"a": 50.0, "b": 8.0}

    def test_weights_never_all_become_zero(
        self, restart: Restart, change: Callable[[WeightBook, Arms], WeightBook]
    ) -> None:
        book = restart(models(m=HALF))
        book.set("m", {"b": 0}, None, "b is broken", "ann")
        book = change(book, {"a": 0, "b": 50})
        assert effective(book) == {"a": 0.0, "b": 50.0}
        assert book.of("m").overrides == {}
        last = book.history("m")[0]
        assert last.reason == "the file changed; overrides dropped: b"
        assert (last.before, last.after) == ({"a": 50.0, "b": 0.0}, {"a": 0.0, "b": 50.0})

    def test_the_last_weighted_arm_leaves(
        self, restart: Restart, change: Callable[[WeightBook, Arms], WeightBook]
    ) -> None:
        book = restart(models(m=HALF))
        book.set("m", {"b": 0}, None, "", "ann")
        book = change(book, {"b": 50})
        assert effective(book) == {"b": 50.0}
        assert book.of("m").overrides == {}


def test_a_model_that_left_and_came_back_starts_from_the_file(restart: Restart) -> None:
    book = restart(models(m=HALF, n=HALF))
    book.set("m", {"a": 7}, None, "", "ann")
    book.follow(models(n=HALF))
    with pytest.raises(NotFound, match="`m`; there are `n`"):
        book.of("m")
    assert book.history("m")[0].after == {}
    assert book.history("m")[0].reason == "the model left the file; overrides dropped: a"
    book = restart(models(n=HALF))
    assert len(book.history("m")) == 3  # told once
    book.follow(models(m=HALF, n=HALF))
    assert effective(book) == HALF
    assert book.of("m").revision == 4
    assert book.of("n").revision == 1


def test_setting_the_file_s_weight_gives_the_arm_back_to_the_file(restart: Restart) -> None:
    book = restart(models(m=HALF))
    book.set("m", {"a": 10}, None, "", "ann")
    assert book.set("m", {"a": 50}, None, "back", "ann") == 3
    assert book.of("m").overrides == {}
    assert effective(book) == HALF
    assert restart(models(m={"a": 55, "b": 50})).of("m").effective == {"a": 55.0, "b": 50.0}


@pytest.mark.parametrize("again", [{"a": 10}, {"a": 10.0, "b": 50}, {"b": 50.0}])
def test_setting_what_is_in_force_changes_nothing(restart: Restart, again: Arms) -> None:
    book = restart(models(m=HALF))
    book.set("m", {"a": 10}, None, "first", "ann")
    before = book.of("m")
    assert book.set("m", again, 2, "second", "bob") == 2
    assert book.of("m") == before
    assert len(book.history("m")) == 2


def test_a_stale_revision_is_a_conflict_that_states_the_one_in_force(restart: Restart) -> None:
    book = restart(models(m=HALF))
    book.set("m", {"a": 10}, 1, "", "ann")
    for stale in (0, 1, 3):
        with pytest.raises(Conflict) as caught:
            book.set("m", {"a": 20}, stale, "", "bob")
        assert "at revision 2 now" in caught.value.message
        assert caught.value.status == 409
        assert caught.value.param == "revision"
    assert effective(book)["a"] == 10.0
    assert book.set("m", {"a": 20}, 2, "", "bob") == 3
    book.follow(models(m={"a": 50, "b": 51}))  # the file's changes count as well
    with pytest.raises(Conflict, match="at revision 4 now"):
        book.set("m", {"a": 30}, 3, "", "bob")


def test_of_two_who_saw_the_same_revision_one_wins(restart: Restart) -> None:
    book = restart(models(m=HALF))
    outcomes: list[object] = []
    barrier = threading.Barrier(8)

    def attempt(weight: int) -> None:
        barrier.wait()
        try:
            outcomes.append(book.set("m", {"a": weight}, 1, "", f"t{weight}"))
        except Conflict as error:
            outcomes.append(error)

    threads = [threading.Thread(target=attempt, args=(n,)) for n in range(1, 9)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(one for one in outcomes if isinstance(one, int)) == [2]
    assert len(outcomes) == 8


BAD: list[tuple[dict[str, Any], str, str]] = [
    ({}, "weights", "No weights were given; model `m` has the arms `a`, `b`."),
    ({"c": 1}, "weights", "Model `m` has no arm `c`; it has `a`, `b`."),
    ({"a": 1, "": 1}, "weights", "no arm ``; it has `a`, `b`"),
    ({"a": -1}, "weights.a", "The weight of arm `a` must be a number from 0 to 1000000."),
    ({"a": float("nan")}, "weights.a", "must be a number"),
    ({"b": float("inf")}, "weights.b", "must be a number"),
    ({"a": 1e300}, "weights.a", "must be a number"),
    ({"a": 10**400}, "weights.a", "must be a number"),
    ({"a": True}, "weights.a", "must be a number"),
    ({"a": "5"}, "weights.a", "must be a number"),
    ({"a": None}, "weights.a", "must be a number"),
    ({"a": 0, "b": 0}, "weights", "no arm of model `m` with a weight above zero"),
]


@pytest.mark.parametrize(("weights", "param", "said"), BAD)
def test_bad_weights_are_refused_whole(
    restart: Restart, weights: dict[str, Any], param: str, said: str
) -> None:
    book = restart(models(m=HALF))
    with pytest.raises(BadRequest) as caught:
        book.set("m", weights, None, "", "ann")
    assert said in caught.value.message
    assert caught.value.param == param
    assert effective(book) == HALF
    assert len(book.history("m")) == 1


def test_the_last_weight_cannot_be_taken_in_two_steps_either(restart: Restart) -> None:
    book = restart(models(m=HALF))
    book.set("m", {"a": 0}, None, "", "ann")
    with pytest.raises(BadRequest, match="no arm of model `m`"):
        book.set("m", {"b": 0}, None, "", "ann")


def test_unknown_models_and_endless_reasons_are_refused(restart: Restart) -> None:
    book = restart(models(m=HALF))
    with pytest.raises(NotFound, match="`nope`; there are `m`"):
        book.set("nope", {"a": 1}, None, "", "ann")
    with pytest.raises(BadRequest, match="at most 500 characters"):
        book.set("m", {"a": 1}, None, "x" * 501, "ann")


def test_what_cannot_be_stored_is_not_done(
    restart: Restart, monkeypatch: pytest.MonkeyPatch
) -> None:
    book = restart(models(m=HALF))
    before = book.of("m")
    restart.store.save_weights([WeightUpdate("m", {}, WeightChange("m", 2, 0, "", "", {}, HALF))])
    with pytest.raises(Conflict, match="Another gateway process"):
        book.set("m", {"a": 1}, None, "", "ann")
    assert book.of("m") == before
    book.follow(models(m=HALF))  # as its message advises
    assert book.set("m", {"a": 1}, 2, "", "ann") == 3

    with restart.store._transaction(reads=True) as connection:
        connection.exec_driver_sql("PRAGMA query_only=ON")
    before = book.of("m")
    with pytest.raises(ConfigError, match=r"the weights cannot be stored: .* readonly"):
        book.follow(models(m={"a": 1, "b": 51}))
    assert book.of("m") == before
    book.follow(models(m=HALF))  # nothing to store
