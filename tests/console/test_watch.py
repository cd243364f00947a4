from __future__ import annotations

import pytest

from gateway.console.reading import read
from gateway.console.watch import KEPT, NOTHING, Watch
from tests.console.pages import page, requests, tokens, ttft

A = ("m", "a")


def filled(*readings: tuple[float, str]) -> Watch:
    watch = Watch()
    for at, text in readings:
        watch.add(at, read(text))
    return watch


def test_backends_of_an_arm_count_together_and_arms_apart() -> None:
    watch = filled(
        (0.0, page()),
        (
            2.0,
            page(
                ttft("a", (0, 1, 1, 1), backend="b1"),
                ttft("a", (0, 0, 2, 2), backend="b2"),
                ttft("b", (5, 5, 5, 5)),
                requests("a", 3),
            ),
        ),
    )
    assert watch.between(A, 0.0, 2.0).ttft == (0, 1, 3, 3)
    assert watch.between(("m", "b"), 0.0, 2.0).ttft == (5, 5, 5, 5)
    assert watch.between(("other", "a"), 0.0, 2.0) == NOTHING


def test_what_was_there_before_the_first_reading_is_not_news() -> None:
    watch = filled((10.0, page(requests("a", 500))), (12.0, page(requests("a", 510))))
    assert watch.between(A, 0.0, 12.0).requests == 10
    assert watch.between(A, 0.0, 11.0).requests == 0


def test_a_moment_between_two_readings_is_as_the_one_before() -> None:
    watch = filled(*((2.0 * n, page(requests("a", 10 * n))) for n in range(5)))
    assert watch.between(A, 3.0, 7.0).requests == 20
    assert watch.latest == 8.0


def test_a_gateway_that_restarts_leaves_no_dent() -> None:
    watch = filled(
        (0.0, page(requests("a", 100), ttft("a", (0, 90, 90, 100)))),
        (2.0, page(requests("a", 110), ttft("a", (0, 99, 99, 110)))),
        (4.0, page()),
        (6.0, page(requests("a", 4), ttft("a", (0, 4, 4, 4)))),
        (8.0, page(requests("a", 5), ttft("a", (0, 5, 5, 5)))),
    )
    everything = watch.between(A, 0.0, 8.0)
    assert (everything.requests, everything.ttft) == (15, (0, 14, 14, 15))
    assert watch.between(A, 2.0, 4.0).requests == 0
    assert watch.between(A, 6.0, 8.0).ttft == (0, 1, 1, 1)


def test_errors_are_what_the_arm_did_wrong() -> None:
    outcomes = ("ok", "rejected", "client_gone", "backend_error", "gateway_error", "timeout")
    watch = filled((0.0, page()), (2.0, page(*(requests("a", 2, one) for one in outcomes))))
    found = watch.between(A, 0.0, 2.0)
    assert (found.requests, found.errors) == (12, 6)


def test_the_cached_share_is_of_tokens() -> None:
    watch = filled((0.0, page(tokens("a", 100, 0))), (2.0, page(tokens("a", 500, 300))))
    assert watch.between(A, 0.0, 2.0).cached_share == 0.75
    assert NOTHING.cached_share is None


@pytest.mark.parametrize("seconds", [2.0, 60.0])
def test_the_past_ends(seconds: float) -> None:
    watch = Watch()
    for number in range(int(2 * KEPT / seconds)):
        watch.add(seconds * number, read(page(requests("a", number))))
    latest = watch.latest
    assert latest is not None
    assert watch.between(A, 0.0, latest).requests == KEPT / seconds
