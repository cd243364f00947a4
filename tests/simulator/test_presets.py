"""The presets against what they were fitted to, in virtual time."""

from __future__ import annotations

import time

import pytest

from gateway.simulator.sequence import Sequence
from gateway.simulator.virtual import Served
from tests.simulator.loads import article_load, percentile, sequence, served

H100 = "h100-llama-70b"
UNCHUNKED = 8192


def p90(chunk: int, load: list[Sequence] | None = None) -> float:
    return percentile(served(H100, chunk, load or article_load(), 32), 90)


@pytest.mark.parametrize(("chunk", "article"), [(UNCHUNKED, 180), (512, 195), (64, 420)])
def test_the_p90_is_near_the_articles(chunk: int, article: float) -> None:
    assert p90(chunk) == pytest.approx(article, rel=0.1)


def test_chunk_512_is_close_to_unchunked_and_chunk_64_about_twice_as_slow() -> None:
    unchunked, middle, small = p90(UNCHUNKED), p90(512), p90(64)
    assert unchunked < middle < small
    assert middle / unchunked == pytest.approx(1.0, abs=0.2)
    assert middle / p90(2048) == pytest.approx(1.0, abs=0.25)
    assert small / middle == pytest.approx(2.2, abs=0.3)
    assert small > p90(128) > p90(256) > middle


def test_the_hit_rate_is_the_same_for_every_chunk_whatever_the_article_says() -> None:
    cached = [[one.cached for one in served(H100, c, article_load(), 32)] for c in (64, 512, 2048)]
    assert [sum(found) for found in cached] == [199 * 1600] * 3


def test_the_articles_load_is_simulated_in_a_moment() -> None:
    start = time.process_time()
    found = served(H100, 64, article_load(), 32)
    assert time.process_time() - start < 2
    assert len(found) == 200


def cpu(chunk: int, length: int, *, warm: bool = False) -> list[Served]:
    """24 requests of one length, 4 at a time; `warm`: the second time they come."""
    load = [sequence(length, 16, name=number % 24) for number in range(48 if warm else 24)]
    return served("cpu-tiny", chunk, load, 4, seqs=32)[-24:]


@pytest.mark.parametrize(
    ("chunk", "length", "measured"),
    [
        (64, 700, 1405),
        (512, 700, 360),
        (2048, 700, 556),
        (64, 2600, 5195),
        (512, 2600, 2865),
        (2048, 2600, 1941),
    ],
)
def test_on_the_small_machine_cold_p90s_are_of_the_right_size(
    chunk: int, length: int, measured: float
) -> None:
    assert 1 / 1.7 < percentile(cpu(chunk, length), 90) / measured < 1.7


@pytest.mark.parametrize("length", [700, 2600])
def test_on_the_small_machine_chunk_64_is_the_slowest_by_far(length: int) -> None:
    others = [percentile(cpu(chunk, length), 90) for chunk in (512, 2048)]
    assert percentile(cpu(64, length), 90) > 2 * max(others)


def test_on_the_small_machine_the_best_chunk_depends_on_the_prompt() -> None:
    def short(chunk: int) -> float:
        return percentile(cpu(chunk, 700), 90)

    def long(chunk: int) -> float:
        return percentile(cpu(chunk, 2600), 90)

    assert short(512) < short(2048)
    assert long(2048) < long(512)


@pytest.mark.parametrize("length", [700, 2600])
@pytest.mark.parametrize("chunk", [64, 512, 2048])
def test_on_the_small_machine_a_cached_prompt_is_several_times_faster(
    chunk: int, length: int
) -> None:
    assert percentile(cpu(chunk, length), 50) > 3 * percentile(cpu(chunk, length, warm=True), 50)
