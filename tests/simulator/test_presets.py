"""The presets against what they were fitted to, in virtual time."""

from __future__ import annotations

import json
import time
from pathlib import Path
from statistics import median

import pytest

from gateway.simulator.sequence import Sequence
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


def cpu(chunk: int, length: int, *, warm: bool = False) -> float:
    """Median TTFT in ms of the sweep's load: 12 requests of one length, 4 at a time; `warm`: the
    second time they come."""
    load = [sequence(length, 8, name=number % 12) for number in range(24 if warm else 12)]
    return percentile(served("cpu-tiny", chunk, load, 4, seqs=32, pause=0.001)[-12:], 50)


@pytest.fixture(scope="module")
def swept() -> dict[tuple[int, int, str], float]:
    """What a real vLLM took: the median over the rounds, by chunk, length and cache."""
    file = Path(__file__).parents[2] / "benchmarks" / "engine" / "results" / "sweep.json"
    rounds: dict[tuple[int, int, str], list[float]] = {}
    for cell in json.loads(file.read_text())["cells"]:
        if cell["at_once"] == 4:
            key = (cell["budget"], cell["prompt"], cell["cache"])
            rounds.setdefault(key, []).append(median(cell["ttft_ms"]))
    return {key: median(values) for key, values in rounds.items()}


@pytest.mark.parametrize("length", [1000, 4000])
@pytest.mark.parametrize("chunk", [64, 128, 256, 512, 1024, 2048])
def test_on_the_small_machine_cold_prompts_take_what_they_took(
    swept: dict[tuple[int, int, str], float], chunk: int, length: int
) -> None:
    """Another run than the one it was fitted to. Worst are 1,000 tokens in chunks of 2,048."""
    assert 1 / 1.8 < cpu(chunk, length) / swept[chunk, length, "cold"] < 1.8


@pytest.mark.parametrize("length", [1000, 4000])
def test_on_the_small_machine_chunk_64_is_the_slowest_by_far(
    swept: dict[tuple[int, int, str], float], length: int
) -> None:
    simulated = {chunk: cpu(chunk, length) for chunk in (64, 512, 2048)}
    for times in (simulated, {chunk: swept[chunk, length, "cold"] for chunk in simulated}):
        assert times[64] > 1.5 * max(times[512], times[2048])


@pytest.mark.parametrize("chunk", [64, 512, 2048])
def test_on_the_small_machine_a_cached_prompt_is_several_times_faster(
    swept: dict[tuple[int, int, str], float], chunk: int
) -> None:
    assert cpu(chunk, 4000) > 3 * cpu(chunk, 4000, warm=True)
    assert swept[chunk, 4000, "cold"] > 3 * swept[chunk, 4000, "cached"]
