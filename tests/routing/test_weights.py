"""One owner of the weights at a time: the file, an override while the file says the same."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from gateway.errors import NotFound
from gateway.routing.weights import WeightBook
from gateway.state.store import WeightChange
from tests.routing.books import HALF, Arms, Restart, effective, models


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
