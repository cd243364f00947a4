"""Names to routes, live weights, and what a reload keeps."""

from __future__ import annotations

from math import inf, nan

import pytest

from gateway.records import EngineFacts
from gateway.routing.assign import choose
from tests.routing.conftest import MakeTable

TWO = {"llama": {"a": (50, ["a1"]), "b": (50, ["b1"])}}


def test_resolves_model_alias_and_arm(make_table: MakeTable) -> None:
    table = make_table(TWO, aliases=["gpt-4o-local", "claude-*"])
    llama = table.routes["llama"]
    assert table.resolve("llama") == (llama, None)
    assert table.resolve("llama@b") == (llama, "b")
    assert table.resolve("gpt-4o-local") == (llama, None)
    assert table.resolve("gpt-4o-local@a") == (llama, "a")
    assert table.resolve("claude-sonnet-4") == (llama, None)
    assert table.resolve("claude-sonnet-4@b") == (llama, "b")


def test_exact_names_beat_patterns_and_the_most_specific_pattern_wins(
    make_table: MakeTable,
) -> None:
    table = make_table(
        {"plain": {"a": (1, ["p1"])}, "all": {"a": (1, ["x1"])}, "claude": {"a": (1, ["c1"])}},
        per_model={
            "plain": {"aliases": ["claude-plain"]},
            "all": {"aliases": ["*"]},
            "claude": {"aliases": ["claude-*", "claude-?"]},
        },
    )
    resolved = {
        name: table.resolve(name)[0].model
        for name in ("plain", "claude-plain", "claude-opus", "claude-4", "anything", "all")
    }
    assert resolved == {
        "plain": "plain",
        "claude-plain": "plain",
        "claude-opus": "claude",
        "claude-4": "claude",
        "anything": "all",
        "all": "all",
    }


def test_a_version_after_at_is_part_of_a_name_that_a_pattern_takes(make_table: MakeTable) -> None:
    table = make_table(TWO, aliases=["claude-*"])
    assert table.resolve("claude-sonnet-4@20250514") == (table.routes["llama"], None)


def test_what_an_engine_said_of_one_model_is_not_believed_of_another(
    make_table: MakeTable,
) -> None:
    """It is asked anew at the next probe."""
    facts = EngineFacts(other_models=("x",))
    before = make_table(TWO)
    before.backends["a1"].facts = facts
    same = make_table(TWO, previous=before)
    assert same.backends["a1"].facts is facts
    renamed = make_table(TWO, previous=same, upstream_model="org/other")
    assert renamed.backends["a1"].facts is None
    renamed.backends["a1"].facts = facts
    moved = make_table({"new": {"a": (1, ["a1"])}}, previous=renamed)
    assert moved.backends["a1"].facts is None


def test_an_unknown_arm_of_a_known_model_is_named_so_that_the_error_can_say_so(
    make_table: MakeTable,
) -> None:
    table = make_table(TWO)
    assert table.resolve("llama@c") == (table.routes["llama"], "c")


@pytest.mark.parametrize("name", ["", "@", "@a", "a", "lama", "LLAMA", "llam", "llama ", "x@llama"])
def test_unknown_names_raise_key_error(make_table: MakeTable, name: str) -> None:
    with pytest.raises(KeyError):
        make_table(TWO, aliases=["claude-*"]).resolve(name)


def test_an_arms_name_alone_is_not_an_arm_even_where_any_name_matches(
    make_table: MakeTable,
) -> None:
    table = make_table(TWO, aliases=["*"])
    assert table.resolve("a") == (table.routes["llama"], None)
    assert table.resolve("@a") == (table.routes["llama"], None)


def test_settings_reach_the_backends(make_table: MakeTable) -> None:
    table = make_table(
        TWO, backends={"a1": {"api_key": "s3cret", "max_concurrency": 7, "url": "http://h:1/p/"}}
    )
    backend = table.backends["a1"]
    assert (backend.url, backend.api_key, backend.max_concurrency) == ("http://h:1/p", b"s3cret", 7)
    assert (backend.arm, backend.model) == ("a", "llama")
    assert table.backends["b1"].api_key is None
    assert table.routes["llama"].arms["a"].backends == [backend]


def test_the_first_arm_is_control_unless_another_is(make_table: MakeTable) -> None:
    arms = make_table(TWO).routes["llama"].arms
    assert (arms["a"].role, arms["b"].role) == ("control", None)


def test_weights_change_as_a_whole_and_old_records_keep_theirs(make_table: MakeTable) -> None:
    route = make_table(TWO).routes["llama"]
    before = route.weights
    route.set_weights({"a": 90, "b": 10}, revision=4)
    assert (route.weights, route.revision) == ({"a": 90.0, "b": 10.0}, 4)
    assert before == {"a": 50.0, "b": 50.0}
    assert [arm.weight for arm in route.arms.values()] == [90.0, 10.0]


@pytest.mark.parametrize(
    "weights",
    [
        {},
        {"a": 1},
        {"a": 1, "b": 1, "c": 1},
        {"a": 1, "b": -1},
        {"a": 0, "b": 0},
        {"a": nan, "b": 1},
        {"a": inf, "b": 1},
    ],
)
def test_weights_that_cannot_be_split_by_are_refused_and_change_nothing(
    make_table: MakeTable, weights: dict[str, float]
) -> None:
    route = make_table(TWO).routes["llama"]
    with pytest.raises(ValueError, match="weight"):
        route.set_weights(weights, revision=9)
    assert (route.weights, route.revision) == ({"a": 50.0, "b": 50.0}, 0)


def test_assignment_is_the_hash_by_model_and_experiment(make_table: MakeTable) -> None:
    sessions = range(300)
    table = make_table(TWO, experiment={"name": "chunk-size"})
    route = table.routes["llama"]
    weights = [("a", 50.0), ("b", 50.0)]
    names = [route.assign(session).name for session in sessions]
    assert names == [choose(route.salt, session, weights) for session in sessions]
    assert 100 < names.count("a") < 200
    renamed = make_table(TWO, experiment={"name": "other"}).routes["llama"]
    assert [renamed.assign(session).name for session in sessions] != names


def test_a_reload_keeps_what_is_known_of_unchanged_backends(make_table: MakeTable) -> None:
    table = make_table(TWO)
    kept = table.backends["a1"]
    kept.claim()
    kept.up = kept.enabled = False
    for _ in range(5):
        kept.circuit.failure()
    again = make_table(TWO, previous=table, backends={"a1": {"max_concurrency": 3}})
    assert again.backends["a1"] is kept
    assert (kept.outstanding, kept.up, kept.enabled, kept.circuit.state) == (
        1,
        False,
        False,
        "open",
    )
    assert kept.max_concurrency == 3


@pytest.mark.parametrize("change", [{"url": "http://elsewhere:1"}, {"api_key": "new"}])
def test_a_reload_starts_afresh_with_another_url_or_key(
    make_table: MakeTable, change: dict[str, str]
) -> None:
    table = make_table(TWO)
    old = table.backends["a1"]
    old.claim()
    again = make_table(TWO, previous=table, backends={"a1": change})
    new = again.backends["a1"]
    assert new is not old
    assert new.outstanding == 0
    assert again.routes["llama"].arms["a"].backends == [new]
    old.release()
    assert (old.outstanding, new.outstanding) == (0, 0)


def test_a_route_held_across_a_reload_acts_on_the_new_configuration(make_table: MakeTable) -> None:
    table = make_table(TWO)
    route = table.routes["llama"]
    arm = route.arms["a"]
    again = make_table({"llama": {"a": (10, ["a1", "a2"]), "c": (90, ["c1"])}}, previous=table)
    assert again.routes["llama"] is route
    assert route.arms["a"] is arm
    assert {b.name for b in route.candidates(arm, 1, (), cross_arm=False)} == {"a1", "a2"}
    assert route.weights == {"a": 10.0, "c": 90.0}
    assert list(route.arms) == ["a", "c"]


def test_what_a_reload_removes_takes_no_more_requests(make_table: MakeTable) -> None:
    table = make_table({**TWO, "gone": {"g": (1, ["g1"])}})
    llama, gone = table.routes["llama"], table.routes["gone"]
    arm_b, arm_g, running = llama.arms["b"], gone.arms["g"], table.backends["b1"]
    running.claim()
    again = make_table({"llama": {"a": (1, ["a1"])}}, previous=table)
    assert set(again.backends) == {"a1"}
    assert list(gone.candidates(arm_g, 1, (), cross_arm=True)) == []
    served_by = [b.name for b in llama.candidates(arm_b, 1, (), cross_arm=True)]
    assert served_by == ["a1"], "a request assigned to a removed arm fails over"
    running.release()
    assert running.outstanding == 0


def test_a_backend_that_moves_to_another_arm_keeps_its_state(make_table: MakeTable) -> None:
    table = make_table({"llama": {"a": (1, ["a1", "x"]), "b": (1, ["b1"])}})
    moved = table.backends["x"]
    moved.claim()
    again = make_table({"llama": {"a": (1, ["a1"]), "b": (1, ["b1", "x"])}}, previous=table)
    assert again.backends["x"] is moved
    assert (moved.arm, moved.outstanding) == ("b", 1)
    assert moved not in again.routes["llama"].arms["a"].backends
