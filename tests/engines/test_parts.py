"""A time to first token, taken apart with the engine's own figures."""

from __future__ import annotations

import msgspec
import pytest

from gateway.engines.parts import Own, Sample, between, restarted
from gateway.vllm.page import CacheConfig, EnginePage, Total

NOTHING = EnginePage(CacheConfig(), *[None] * 12)


def page(ttft: Total, queue: Total | None = None, prefill: Total | None = None) -> EnginePage:
    return msgspec.structs.replace(NOTHING, ttft=ttft, queue=queue, prefill=prefill)


def own(ttft: float, upstream: float, count: int) -> Own:
    return Own(Total(ttft, count), Total(upstream, count))


BEFORE = Sample(100.0, own(10.0, 9.0, 50), page(Total(8.0, 60), Total(1.0, 60), Total(4.0, 60)))
# Ten more first tokens: 100 ms each, 95 of it from sending, 90 by the engine's clock, of which 20
# in its queue and 60 in prefill.
AFTER = Sample(160.0, own(11.0, 9.95, 60), page(Total(8.9, 70), Total(1.2, 70), Total(4.6, 70)))


def test_the_parts_of_the_first_tokens_between_two_samples_add_up() -> None:
    parts = between(BEFORE, AFTER)
    assert parts is not None
    assert (parts.seconds, parts.requests, parts.engine_requests) == (60.0, 10, 10)
    assert parts.total_ms == 100.0
    assert parts.gateway_ms == pytest.approx(5.0)
    assert parts.network_ms == pytest.approx(5.0)
    assert parts.engine_queue_ms == pytest.approx(20.0)
    assert parts.engine_prefill_ms == pytest.approx(60.0)
    assert parts.engine_other_ms == pytest.approx(10.0)
    assert parts.comparable


def test_an_engine_that_tells_no_queue_leaves_it_in_the_rest() -> None:
    before = BEFORE._replace(engine=page(Total(8.0, 60)))
    after = AFTER._replace(engine=page(Total(8.9, 70)))
    parts = between(before, after)
    assert parts is not None
    assert (parts.engine_queue_ms, parts.engine_prefill_ms) == (None, None)
    assert parts.engine_other_ms == pytest.approx(90.0)


@pytest.mark.parametrize(("others", "comparable"), [(0, True), (1, True), (2, False), (90, False)])
def test_an_engine_that_others_ask_too_is_not_comparable(others: int, comparable: bool) -> None:
    after = AFTER._replace(engine=page(Total(9.0, 70 + others)))
    parts = between(BEFORE, after)
    assert parts is not None
    assert parts.engine_requests == 10 + others
    assert parts.comparable is comparable


def test_without_first_tokens_there_is_nothing_to_take_apart() -> None:
    assert between(BEFORE, BEFORE) is None
    assert between(BEFORE, AFTER._replace(own=BEFORE.own)) is None
    assert between(BEFORE, AFTER._replace(engine=BEFORE.engine)) is None
    assert between(BEFORE, AFTER._replace(engine=NOTHING)) is None


def test_an_engine_that_counts_anew_has_restarted() -> None:
    assert restarted(AFTER.engine, page(Total(0.1, 1)))
    assert not restarted(BEFORE.engine, AFTER.engine)
    assert not restarted(BEFORE.engine, NOTHING)
