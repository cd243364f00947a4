"""Weighted rendezvous hashing: shares, moves, and numbers at the edge of a double."""

from __future__ import annotations

from collections import Counter
from math import isfinite, log, sqrt

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gateway.routing.assign import choose, draw, salt_of, unit_interval

SESSIONS = range(20_000)
SIGMAS = 6.0

weight = st.floats(0.01, 1000.0, allow_nan=False)
salts = st.binary(max_size=64)


def assignment(salt: bytes, weights: dict[str, float], sessions: range = SESSIONS) -> list[str]:
    pairs = list(weights.items())
    # Consecutive integers are the worst sessions a hash can get.
    return [choose(salt, session, pairs) for session in sessions]


def arms(least: int, most: int) -> st.SearchStrategy[dict[str, float]]:
    names = st.text(st.characters(codec="ascii", categories=["L", "N"]), min_size=1, max_size=12)
    return st.dictionaries(names, weight, min_size=least, max_size=most)


@settings(max_examples=25, deadline=None)
@given(salts, arms(2, 5))
def test_shares_follow_the_weights(salt: bytes, weights: dict[str, float]) -> None:
    counts = Counter(assignment(salt, weights))
    total = sum(weights.values())
    for name, value in weights.items():
        share = value / total
        n = len(SESSIONS)
        deviation = abs(counts[name] - n * share)
        assert deviation <= SIGMAS * sqrt(n * share * (1 - share)) + 1


@settings(max_examples=40, deadline=None)
@given(salts, weight, weight, weight, weight)
def test_with_two_arms_only_the_sessions_that_must_move_and_all_one_way(
    salt: bytes, a: float, b: float, new_a: float, new_b: float
) -> None:
    sessions = range(3000)
    before = assignment(salt, {"a": a, "b": b}, sessions)
    after = assignment(salt, {"a": new_a, "b": new_b}, sessions)
    moves = Counter((old, new) for old, new in zip(before, after, strict=True) if old != new)
    raised = "a" if new_a * b > a * new_b else "b"
    assert {new for _, new in moves} <= {raised}
    # The shares cannot change with fewer moves than the difference of the counts.
    assert moves.total() == abs(Counter(after)["a"] - Counter(before)["a"])


@settings(max_examples=40, deadline=None)
@given(salts, st.tuples(weight, weight, weight), st.tuples(weight, weight, weight))
def test_with_three_arms_sessions_move_only_toward_arms_whose_relative_weight_rose(
    salt: bytes, old: tuple[float, float, float], new: tuple[float, float, float]
) -> None:
    sessions = range(3000)
    names = ("a", "b", "c")
    before = assignment(salt, dict(zip(names, old, strict=True)), sessions)
    after = assignment(salt, dict(zip(names, new, strict=True)), sessions)
    rise = {name: n / o for name, n, o in zip(names, new, old, strict=True)}
    for source, target in set(zip(before, after, strict=True)):
        assert source == target or rise[target] > rise[source]


@settings(max_examples=40, deadline=None)
@given(salts, arms(1, 4), weight)
def test_a_new_arm_takes_sessions_and_moves_none_between_the_others(
    salt: bytes, weights: dict[str, float], added: float
) -> None:
    sessions = range(2000)
    before = assignment(salt, weights, sessions)
    after = assignment(salt, {**weights, "-new-": added}, sessions)
    assert all(new in (old, "-new-") for old, new in zip(before, after, strict=True))


@given(salts, st.integers(0, 2**64 - 1), arms(2, 5))
def test_the_order_of_the_arms_does_not_matter(
    salt: bytes, session: int, weights: dict[str, float]
) -> None:
    pairs = list(weights.items())
    assert choose(salt, session, pairs) == choose(salt, session, pairs[::-1])


@given(salts, st.integers(0, 2**64 - 1), st.sampled_from([0.0, -0.0]))
def test_weight_zero_is_never_chosen(salt: bytes, session: int, zero: float) -> None:
    assert choose(salt, session, [("off", zero), ("on", 1e-6), ("off too", zero)]) == "on"


def test_no_weight_above_zero_is_an_error() -> None:
    for weights in ([], [("a", 0.0)], [("a", 0.0), ("b", 0.0)]):
        with pytest.raises(ValueError, match="above zero"):
            choose(b"", 1, weights)


@pytest.mark.parametrize("bits", [0, 1, 2**12 - 1, 2**63, 2**64 - 2**12, 2**64 - 1])
def test_u_is_strictly_between_0_and_1_at_the_extremes(bits: int) -> None:
    u = unit_interval(bits)
    assert 0.0 < u < 1.0
    assert isfinite(log(u))
    assert log(u) < 0.0


@given(st.integers(0, 2**64 - 1))
def test_u_is_strictly_between_0_and_1(bits: int) -> None:
    assert 0.0 < unit_interval(bits) < 1.0


def test_smallest_and_largest_weights_still_choose() -> None:
    tiny, huge = 5e-324, 1e6
    assert choose(b"", 1, [("tiny", tiny)]) == "tiny"
    assert choose(b"", 1, [("tiny", tiny), ("huge", huge)]) == "huge"


def test_experiments_split_the_same_sessions_independently() -> None:
    weights = {"a": 50.0, "b": 50.0}
    first = assignment(salt_of("arm", "llama", "chunk-size"), weights)
    second = assignment(salt_of("arm", "llama", "block-size"), weights)
    agree = sum(one == other for one, other in zip(first, second, strict=True))
    n = len(SESSIONS)
    assert abs(agree - n / 2) <= SIGMAS * sqrt(n / 4)


def test_parts_of_a_salt_cannot_be_shifted_into_each_other() -> None:
    assert salt_of("ab", "c") != salt_of("a", "bc")


def test_the_hash_never_changes() -> None:
    """Another hash would reshuffle every running experiment at the next upgrade."""
    salt = salt_of("arm", "llama-3-70b", "chunk-size")
    assert salt.hex() == "f5ed06178fa25f3d62ce8953c6df0f12"
    assert draw(salt, 2**64 - 1, "chunk-512") == 0xA03E90BA063A7CFB
    weights = [("chunk-512", 50.0), ("chunk-2048", 50.0)]
    assert (
        "".join(choose(salt, s, weights)[6] for s in range(32))
        == "52252525552225522555222522225222"
    )


@pytest.mark.parametrize("session", [-1, 2**64])
def test_a_session_has_64_bits(session: int) -> None:
    with pytest.raises(OverflowError):
        draw(b"", session, "a")
