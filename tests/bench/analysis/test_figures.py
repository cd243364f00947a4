"""The figures of a round, under vLLM's names."""

from __future__ import annotations

import pytest

from gateway.bench.analysis.figures import figures
from gateway.bench.results import Sample
from tests.bench.made import failed, ok


def test_latencies_are_those_of_complete_replies_and_failures_are_counted() -> None:
    found = figures([ok(100.0), ok(300.0), failed(ttft_ms=5000.0)], 2.0, None)
    assert (found["completed"], found["failed"]) == (2, 1)
    assert found["median_ttft_ms"] == 200.0
    assert found["request_throughput"] == 1.0


def test_goodput_counts_what_is_complete_and_in_time() -> None:
    samples = [ok(100.0), ok(500.0), ok(500.1), failed(ttft_ms=10.0)]
    assert figures(samples, 4.0, 500.0)["request_goodput"] == 0.5
    assert figures(samples, 4.0, None)["request_goodput"] is None


def test_time_per_output_token_is_that_after_the_first() -> None:
    samples = [ok(100.0, e2e_ms=400.0, completion_tokens=4, itl_ms=(100.0, 100.0, 100.0))]
    found = figures(samples, 1.0, None)
    assert found["mean_tpot_ms"] == 100.0
    assert found["median_itl_ms"] == 100.0
    assert found["output_throughput"] == 4.0


def test_one_token_has_no_time_per_token() -> None:
    assert figures([ok(100.0, completion_tokens=1)], 1.0, None)["mean_tpot_ms"] is None


def test_tokens_that_one_reply_does_not_state_have_no_total() -> None:
    found = figures([ok(1.0, prompt_tokens=7), ok(1.0)], 1.0, None)
    assert found["total_input_tokens"] is None and found["output_throughput"] is None


@pytest.mark.parametrize("samples", [[], [failed()]])
def test_a_round_without_a_complete_reply_has_no_latency(samples: list[Sample]) -> None:
    found = figures(samples, 1.0, 100.0)
    assert found["p90_ttft_ms"] is None and found["completed"] == 0
    assert found["request_goodput"] == 0.0
