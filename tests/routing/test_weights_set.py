"""Weights set by hand: whole or not at all, and only by whoever saw those in force."""

from __future__ import annotations

import threading
from typing import Any

import pytest

from gateway.errors import BadRequest, ConfigError, Conflict, NotFound
from gateway.state.store import WeightChange, WeightUpdate
from tests.routing.books import HALF, Arms, Restart, effective, models


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
