from __future__ import annotations

import pytest

from gateway.console.sessions import (
    FORGOTTEN,
    FREE_TRIES,
    LIFETIME,
    LONGEST_WAIT,
    MOST,
    SHARED,
    Role,
    Session,
    Sessions,
    Throttle,
)


class FakeClock:
    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


def test_a_session_is_found_by_its_token_until_it_ends(clock: FakeClock) -> None:
    sessions = Sessions(clock)
    token = sessions.start("sk-1", Role.READ, "Ada")
    found = sessions.find(token)
    assert found is not None and (found.key, found.role) == ("sk-1", Role.READ)
    assert sessions.find(token + "x") is None
    assert sessions.find("") is None
    clock.now += LIFETIME
    assert not sessions.holds(found)
    assert sessions.find(token) is None


def test_signing_out_ends_what_open_pages_hold(clock: FakeClock) -> None:
    sessions = Sessions(clock)
    token, other = (sessions.start("sk-1", Role.ADMIN, name) for name in ("Ada", "Ben"))
    held, bens = sessions.find(token), sessions.find(other)
    assert held is not None and bens is not None
    sessions.end(token)
    assert sessions.find(token) is None
    assert (sessions.holds(held), sessions.holds(bens)) == (False, True)


def test_there_is_an_end_to_their_number(clock: FakeClock) -> None:
    sessions = Sessions(clock)
    tokens = [sessions.start("sk-1", Role.ADMIN, "") for _ in range(MOST + 1)]
    assert sessions.find(tokens[0]) is None
    assert sessions.find(tokens[1]) is not None
    assert len(set(tokens)) == MOST + 1


@pytest.mark.parametrize(
    ("name", "actor"),
    [("Ada", "Ada (console)"), ("", "console"), ("Åsa\r\nx: y", "?sax: y (console)")],
)
def test_the_history_tells_who(name: str, actor: str) -> None:
    assert Session("sk-1", Role.ADMIN, name, 0.0).actor == actor


def test_no_key_is_shown_by_accident() -> None:
    assert "sk-1" not in repr(Session("sk-1", Role.ADMIN, "Ada", 0.0))


def test_who_fails_waits_twice_as_long_each_time(clock: FakeClock) -> None:
    throttle = Throttle(clock)
    waits = []
    for _ in range(FREE_TRIES + 8):
        waits.append(throttle.wait("one"))
        throttle.begin("one")
    assert waits[: FREE_TRIES + 4] == [0.0] * FREE_TRIES + [1.0, 2.0, 4.0, 8.0]
    assert waits[-1] == LONGEST_WAIT
    assert throttle.wait("other") == 0.0
    clock.now += LONGEST_WAIT
    assert throttle.wait("one") == 0.0


def test_the_right_key_and_time_clear_an_address(clock: FakeClock) -> None:
    throttle = Throttle(clock)
    for address in ("one", "other"):
        for _ in range(FREE_TRIES + 3):
            throttle.begin(address)
    throttle.passed("one")
    assert throttle.wait("one") == 0.0
    assert throttle.wait("other") > 0
    clock.now += FORGOTTEN
    throttle.begin("other")
    assert throttle.wait("other") == 0.0


def test_many_addresses_are_no_way_around(clock: FakeClock) -> None:
    throttle = Throttle(clock)
    for number in range(FREE_TRIES * SHARED):
        throttle.begin(f"address {number}")
    assert throttle.wait("a new one") > 0
