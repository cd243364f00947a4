"""Limits by a clock that passes when told to: what is admitted, refused, said and kept."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest

from gateway.keys.keyring import Key
from gateway.keys.limits import Grant, Limiter, LimitReached, Standing, duration
from gateway.records import Refusal
from tests.keys.conftest import Clock

FREE = Key("free", "free")


@pytest.fixture
def limiter(clock: Clock) -> Limiter:
    return Limiter(clock)


def refused(limiter: Limiter, key: Key) -> LimitReached:
    with pytest.raises(LimitReached) as caught:
        limiter.admit(key)
    return caught.value


def as_dict(headers: list[tuple[bytes, bytes]]) -> dict[str, str]:
    assert len({name for name, _ in headers}) == len(headers)
    return {name.decode(): value.decode() for name, value in headers}


def test_a_key_without_limits_is_always_admitted(limiter: Limiter) -> None:
    grants = [limiter.admit(FREE) for _ in range(1000)]
    assert grants[-1].headers == []
    assert limiter.standing(FREE) == Standing(1000, None, None)


def test_requests_beyond_the_minute_are_refused_until_one_is_free(
    limiter: Limiter, clock: Clock
) -> None:
    key = replace(FREE, name="dev", requests_per_minute=5)
    for _ in range(5):
        limiter.admit(key).release()
    error = refused(limiter, key)
    assert error.status == 429
    assert error.retry_after == 12
    assert error.message == "Key `dev` has used its 5 requests per minute; try again in 12s."
    clock.now += 11.9
    assert refused(limiter, key).retry_after == 1
    clock.now += 0.1
    limiter.admit(key)
    assert refused(limiter, key).retry_after == 12


@pytest.mark.parametrize("limit", [1, 3, 7, 60, 601, 100_000])
def test_the_whole_allowance_may_be_used_at_once(limit: int, clock: Clock) -> None:
    key, limiter = replace(FREE, requests_per_minute=limit), Limiter(clock)
    for _ in range(limit):
        limiter.admit(key).release()
    refused(limiter, key)


@pytest.mark.parametrize("limit", [1, 7, 90, 600])
def test_waiting_as_long_as_it_says_is_enough(limit: int, clock: Clock) -> None:
    key, limiter = replace(FREE, requests_per_minute=limit), Limiter(clock)
    for _ in range(limit):
        limiter.admit(key)
    for _ in range(50):
        wait = refused(limiter, key).retry_after
        assert wait is not None
        assert wait == int(wait) >= 1
        clock.now += wait
        free = limiter.standing(key).requests_left
        assert free
        for _ in range(free):
            limiter.admit(key)


def test_a_refused_request_counts_against_nothing(limiter: Limiter, clock: Clock) -> None:
    key = replace(FREE, requests_per_minute=10, tokens_per_minute=100, max_concurrency=2)
    limiter.admit(key).charge(1)
    running = limiter.admit(key)
    before = limiter.standing(key)
    for _ in range(20):
        refused(limiter, key)
    assert limiter.standing(key) == before
    running.charge(500)
    running.release()
    before = limiter.standing(key)
    for _ in range(20):
        refused(limiter, key)
    assert limiter.standing(key) == before == Standing(1, 8, 0)


def test_tokens_are_charged_after_the_fact_and_may_overdraw(limiter: Limiter, clock: Clock) -> None:
    key = replace(FREE, name="dev", tokens_per_minute=600)
    first, second = limiter.admit(key), limiter.admit(key)  # nothing known yet of their use
    first.charge(599)
    limiter.admit(key)  # one token is left
    second.charge(601)
    error = refused(limiter, key)
    # 600 a minute are 10 a second: 600 tokens of debt and the first free one.
    assert error.retry_after == 61
    assert error.message == (
        "Key `dev` has used its 600 tokens (prompt and completion) per minute; try again in 61s."
    )
    clock.now += 60
    refused(limiter, key)
    clock.now += 0.1
    limiter.admit(key)


def test_the_longer_wait_is_the_one_that_is_told(limiter: Limiter, clock: Clock) -> None:
    key = replace(FREE, requests_per_minute=2, tokens_per_minute=60)
    limiter.admit(key).charge(180)
    error = refused(limiter, key)
    assert "60 tokens" in error.message
    assert error.refusal is Refusal.TOKENS_PER_MINUTE
    assert error.retry_after == 121
    other = replace(FREE, id="other", requests_per_minute=1, tokens_per_minute=6000)
    limiter.admit(other).charge(6000)
    error = refused(limiter, other)
    assert "1 requests" in error.message
    assert error.refusal is Refusal.REQUESTS_PER_MINUTE
    assert error.retry_after == 60


def test_requests_at_once(limiter: Limiter) -> None:
    key = replace(FREE, name="dev", max_concurrency=2)
    first, _ = limiter.admit(key), limiter.admit(key)
    error = refused(limiter, key)
    assert (error.retry_after, error.refusal) == (1, Refusal.MAX_CONCURRENCY)
    assert error.message == (
        "Key `dev` has 2 requests running, as many as it may have at once; let one end and try "
        "again in 1s."
    )
    first.release()
    limiter.admit(key)
    refused(limiter, key)


def test_release_and_charge_count_once(limiter: Limiter) -> None:
    key = replace(FREE, tokens_per_minute=1000, max_concurrency=2)
    first, second = limiter.admit(key), limiter.admit(key)
    for _ in range(5):
        first.charge(10)
        first.release()
    assert limiter.standing(key) == Standing(1, None, 990)
    second.charge(0)
    second.charge(10)
    second.release()
    assert limiter.standing(key) == Standing(0, None, 990)


def test_a_request_that_used_nothing_is_charged_nothing(limiter: Limiter) -> None:
    key = replace(FREE, tokens_per_minute=1000)
    for tokens in (0, -5):
        grant = limiter.admit(key)
        grant.charge(tokens)
        grant.release()
    assert limiter.standing(key).tokens_left == 1000


def test_headers_are_those_of_openai(limiter: Limiter, clock: Clock) -> None:
    key = replace(FREE, requests_per_minute=50, tokens_per_minute=1000)
    assert as_dict(limiter.admit(key).headers) == {
        "x-ratelimit-limit-requests": "50",
        "x-ratelimit-remaining-requests": "49",
        "x-ratelimit-reset-requests": "1.2s",
        "x-ratelimit-limit-tokens": "1000",
        "x-ratelimit-remaining-tokens": "1000",
        "x-ratelimit-reset-tokens": "0s",
    }
    grant = limiter.admit(key)
    grant.charge(2500)
    headers = as_dict(grant.headers)
    assert headers["x-ratelimit-remaining-requests"] == "48"
    assert headers["x-ratelimit-remaining-tokens"] == "0"
    assert headers["x-ratelimit-reset-tokens"] == "2m30s"
    clock.now += 90
    headers = as_dict(refused(limiter, key).headers)
    assert headers["x-ratelimit-remaining-requests"] == "50"
    assert headers["x-ratelimit-reset-tokens"] == "1m0s"


def test_only_limits_that_exist_have_headers(limiter: Limiter) -> None:
    requests = replace(FREE, id="r", requests_per_minute=3)
    tokens = replace(FREE, id="t", tokens_per_minute=3)
    together = replace(FREE, id="c", max_concurrency=3)
    assert {n.rsplit("-", 1)[1] for n in as_dict(limiter.admit(requests).headers)} == {"requests"}
    assert {n.rsplit("-", 1)[1] for n in as_dict(limiter.admit(tokens).headers)} == {"tokens"}
    assert limiter.admit(together).headers == []


@pytest.mark.parametrize(
    ("seconds", "said"),
    [
        (0, "0s"),
        (1e-9, "0s"),
        (0.0001, "1ms"),
        (0.12, "120ms"),
        (0.9991, "1s"),
        (1.2, "1.2s"),
        (8.64, "8.64s"),
        (59.9991, "1m0s"),
        (360, "6m0s"),
        (61.5, "1m1.5s"),
    ],
)
def test_durations_are_written_as_openai_writes_them(seconds: float, said: str) -> None:
    assert duration(seconds) == said.encode()


def test_keys_do_not_share_a_limit(limiter: Limiter) -> None:
    one, two = (replace(FREE, id=id, requests_per_minute=1) for id in "ab")
    limiter.admit(one)
    limiter.admit(two)
    refused(limiter, one)


def test_use_survives_a_reload_that_leaves_the_limits(limiter: Limiter) -> None:
    key = replace(FREE, requests_per_minute=2, tokens_per_minute=100, max_concurrency=9)
    grant = limiter.admit(key)
    grant.charge(40)
    again = replace(key, name="renamed", models=("m",))
    assert again is not key
    limiter.admit(again)
    assert limiter.standing(again) == Standing(2, 0, 60)
    assert "`renamed`" in refused(limiter, again).message


def test_a_limit_that_changed_starts_anew_and_the_others_go_on(limiter: Limiter) -> None:
    key = replace(FREE, requests_per_minute=2, tokens_per_minute=100, max_concurrency=2)
    first, _ = limiter.admit(key), limiter.admit(key)
    first.charge(1000)
    more = replace(key, tokens_per_minute=500, max_concurrency=3)
    assert limiter.standing(key).tokens_left == 0
    assert "2 requests per minute" in refused(limiter, more).message
    assert limiter.standing(more) == Standing(2, 0, 500)
    free = replace(more, requests_per_minute=None)
    limiter.admit(free)
    assert "3 requests running" in refused(limiter, free).message  # the first two still count
    first.release()
    limiter.admit(free)


def test_requests_admitted_before_a_reload_are_released_after_it(limiter: Limiter) -> None:
    key = replace(FREE, max_concurrency=1)
    grant = limiter.admit(key)
    same = replace(key)
    refused(limiter, same)
    grant.release()
    limiter.admit(same).release()
    assert limiter.standing(same).running == 0


def test_memory_is_bounded_by_the_keys_in_use(limiter: Limiter, clock: Clock) -> None:
    held: list[Grant] = []
    for n in range(20_000):
        grant = limiter.admit(Key(f"k{n}", "k", requests_per_minute=6000))
        if n % 1000 == 0:
            held.append(grant)
        else:
            grant.release()
        clock.now += 0.02  # the allowance is whole again before the next key comes
    assert len(limiter._accounts) <= 128
    for n, grant in enumerate(held):
        assert limiter.standing(Key(f"k{n * 1000}", "k")).running == 1
        grant.release()


def test_a_key_in_debt_is_not_forgotten(limiter: Limiter, clock: Clock) -> None:
    key = replace(FREE, id="debtor", tokens_per_minute=100)
    grant = limiter.admit(key)
    grant.charge(10_000)
    grant.release()
    for n in range(1000):
        limiter.admit(Key(f"k{n}", "k")).release()
    assert len(limiter._accounts) <= 128
    assert refused(limiter, key).retry_after == 5941  # 9,900 tokens and the first free one


def test_an_unused_key_stands_at_its_limits(limiter: Limiter) -> None:
    key = replace(FREE, requests_per_minute=7, tokens_per_minute=11)
    assert limiter.standing(key) == Standing(0, 7, 11)
    assert limiter._accounts == {}


def test_large_limits_lose_nothing_to_rounding(clock: Clock) -> None:
    key, limiter = replace(FREE, tokens_per_minute=1_000_000_000), Limiter(clock)
    grant = limiter.admit(key)
    grant.charge(999_999_000)
    assert math.isclose(limiter.standing(key).tokens_left or 0, 1000, abs_tol=10)
    limiter.admit(key)
