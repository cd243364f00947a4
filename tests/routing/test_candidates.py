"""Which backend a request gets: its session's own, the least loaded, another arm's."""

from __future__ import annotations

from collections import Counter

import pytest

from gateway.routing.table import Route, Table
from tests.routing.conftest import MakeTable

POOL = {"llama": {"a": (80, ["a1", "a2", "a3"]), "b": (15, ["b1"]), "c": (5, ["c1", "c2"])}}


@pytest.fixture
def table(make_table: MakeTable) -> Table:
    return make_table(POOL)


def order(route: Route, arm: str, session: int, *tried: str, cross_arm: bool = True) -> list[str]:
    candidates = route.candidates(route.arms[arm], session, tried, cross_arm=cross_arm)
    return [backend.name for backend in candidates]


def test_a_session_keeps_its_backend_and_sessions_spread_evenly(table: Table) -> None:
    route = table.routes["llama"]
    homes = [order(route, "a", session)[0] for session in range(3000)]
    assert homes == [order(route, "a", session)[0] for session in range(3000)]
    assert all(850 < count < 1150 for count in Counter(homes).values())
    assert len(set(homes)) == 3


def test_an_arm_and_its_backend_of_one_name_draw_independently(make_table: MakeTable) -> None:
    """Else the sessions of arm `x`, which drew high for `x`, would be at home on backend `x`."""
    route = make_table({"llama": {"x": (10, ["x", "y"]), "z": (90, ["z"])}}).routes["llama"]
    mine = [session for session in range(20_000) if route.assign(session).name == "x"]
    at_x = sum(order(route, "x", session)[0] == "x" for session in mine)
    assert 0.45 < at_x / len(mine) < 0.55


def test_load_up_to_the_limit_does_not_move_a_session(table: Table) -> None:
    route = table.routes["llama"]
    home = order(route, "a", 1)[0]
    table.backends[home].outstanding = 8
    assert order(route, "a", 1)[0] == home
    table.backends[home].outstanding = 9
    first, *_, last = order(route, "a", 1)
    assert first != home
    assert last == home


def test_the_limit_grows_with_the_least_loaded(table: Table) -> None:
    route = table.routes["llama"]
    home = order(route, "a", 1)[0]
    for backend in route.arms["a"].backends:
        backend.outstanding = 10
    table.backends[home].outstanding = 28
    assert order(route, "a", 1)[0] == home
    table.backends[home].outstanding = 29
    assert order(route, "a", 1)[0] != home


def test_a_full_home_gives_way_to_the_least_loaded(make_table: MakeTable) -> None:
    table = make_table(POOL, backends={"a1": {"max_concurrency": 2}})
    route = table.routes["llama"]
    session = next(s for s in range(100) if order(route, "a", s)[0] == "a1")
    table.backends["a1"].outstanding = 2
    table.backends["a2"].outstanding = 4
    table.backends["a3"].outstanding = 3
    assert order(route, "a", session) == ["a3", "a2", "a1"]


def test_with_equal_loads_an_overloaded_homes_sessions_spread(table: Table) -> None:
    route = table.routes["llama"]
    table.backends["a1"].outstanding = 50
    at_home = [s for s in range(3000) if order(route, "a", s)[-1] == "a1"]
    firsts = Counter(order(route, "a", session)[0] for session in at_home)
    assert set(firsts) == {"a2", "a3"}
    assert min(firsts.values()) > 0.4 * len(at_home)


def test_sessions_of_a_lost_backend_settle_on_one_other_each_and_no_other_moves(
    table: Table,
) -> None:
    route = table.routes["llama"]
    before = [order(route, "a", session) for session in range(600)]
    table.backends["a2"].up = False
    for session, old in enumerate(before):
        expected = [name for name in old if name != "a2"]
        assert order(route, "a", session)[0] == expected[0]
    table.backends["a2"].up = True
    assert [order(route, "a", session) for session in range(600)] == before


@pytest.mark.parametrize("how", ["up", "enabled", "circuit"])
def test_unusable_backends_are_no_candidates(table: Table, how: str) -> None:
    route = table.routes["llama"]
    backend = table.backends["a1"]
    if how == "circuit":
        for _ in range(5):
            backend.circuit.failure()
    else:
        setattr(backend, how, False)
    assert set(order(route, "a", 1)) == {"a2", "a3"}


def test_a_retry_goes_to_the_arms_other_backends_then_to_other_arms_by_weight(
    table: Table,
) -> None:
    route = table.routes["llama"]
    first = order(route, "a", 1)
    assert set(first) == {"a1", "a2", "a3"}
    assert set(order(route, "a", 1, first[0])) == set(first[1:])
    assert order(route, "a", 1, "a1", "a2", "a3")[0] == "b1"
    assert set(order(route, "a", 1, "a1", "a2", "a3")[1:]) == {"c1", "c2"}
    assert order(route, "a", 1, "a1", "a2", "a3", cross_arm=False) == []


def test_a_dead_arm_is_served_by_the_others_only_where_that_is_allowed(table: Table) -> None:
    route = table.routes["llama"]
    for backend in route.arms["c"].backends:
        backend.up = False
    assert order(route, "c", 1, cross_arm=False) == []
    assert order(route, "c", 1)[:3] != []
    assert order(route, "c", 1)[0] in {"a1", "a2", "a3"}
    assert order(route, "c", 1)[-1] == "b1"


def test_a_full_arm_is_waited_for(table: Table) -> None:
    """Spilling its load over would bend the split and hide that the arm is slow."""
    route = table.routes["llama"]
    table.backends["b1"].outstanding = table.backends["b1"].max_concurrency
    assert order(route, "b", 1) == ["b1"]
    assert not table.backends["b1"].claim()


def test_an_arm_of_weight_zero_serves_those_who_name_it_and_no_failover(table: Table) -> None:
    route = table.routes["llama"]
    route.set_weights({"a": 1, "b": 0, "c": 1}, revision=1)
    assert order(route, "b", 1, cross_arm=False) == ["b1"]
    for backend in route.arms["a"].backends:
        backend.up = False
    assert set(order(route, "a", 1)) == {"c1", "c2"}
