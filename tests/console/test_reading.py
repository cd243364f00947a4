from __future__ import annotations

import math

import pytest

from gateway.console.reading import CACHED, PROMPT, REQUESTS, read
from tests.console.pages import page, requests, tokens, ttft


def test_a_page_is_read_series_by_series() -> None:
    found = read(
        page(
            ttft("a", (0, 1, 2, 3), backend="b1"),
            ttft("a", (0, 0, 0, 1), backend="b2"),
            requests("a", 4),
            requests("a", 1, outcome="timeout"),
            tokens("a", 100, 75),
        )
    )
    assert found.bounds == (0.1, 0.2, 0.4, math.inf)
    assert sorted(found.ttft.values()) == [(0, 0, 0, 1), (0, 1, 2, 3)]
    assert {dict(labels)["backend"] for labels in found.ttft} == {"b1", "b2"}
    by_name = [
        (name, dict(labels).get("outcome"), v) for (name, labels), v in found.counters.items()
    ]
    assert sorted(by_name, key=str) == [
        (CACHED, None, 75.0),
        (PROMPT, None, 100.0),
        (REQUESTS, "ok", 4.0),
        (REQUESTS, "timeout", 1.0),
    ]


def test_a_gateway_without_requests_has_an_empty_page() -> None:
    found = read(page())
    assert (found.bounds, found.ttft, found.counters) == ((), {}, {})


def test_metrics_whose_names_begin_alike_are_not_mixed_up() -> None:
    other = ttft("a", (1, 1, 1, 1)).replace("token_seconds", "token_by_prompt_seconds")
    assert read(page(other)).ttft == {}


def test_what_is_no_page_is_refused() -> None:
    with pytest.raises(ValueError):
        read('gateway_requests_total{model="m" 3')
