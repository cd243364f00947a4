"""Counters: tokens, outcomes, objectives, failovers, and the series they may have."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from gateway.records import NoToken, Outcome, Record, Usage
from gateway.telemetry.metrics import Metrics
from tests.telemetry.conftest import FAILED, SERVED

Read = Callable[..., float | None]
Scrape = Callable[[Metrics], Awaitable[Read]]
Streamed = Callable[..., Record]


async def test_tokens_are_summed(metrics: Metrics, streamed: Streamed, scrape: Scrape) -> None:
    metrics.observe(streamed(usage=Usage(prompt=1600, cached=1024, completion=40)))
    metrics.observe(streamed(usage=Usage(prompt=400, cached=16, completion=2)))
    metrics.observe(streamed(usage=None))
    read = await scrape(metrics)
    assert read("gateway_prompt_tokens_total", **SERVED) == 2000
    assert read("gateway_cached_prompt_tokens_total", **SERVED) == 1040
    assert read("gateway_completion_tokens_total", **SERVED) == 42


@pytest.mark.parametrize(
    ("outcome", "status", "reason", "slo"),
    [
        (Outcome.BACKEND_ERROR, 502, NoToken.BACKEND_ERROR, "missed"),
        (Outcome.TIMEOUT, 504, NoToken.TIMEOUT, "missed"),
        (Outcome.GATEWAY_ERROR, 503, NoToken.GATEWAY_ERROR, "missed"),
        (Outcome.REJECTED, 400, NoToken.REJECTED, None),
        (Outcome.CLIENT_GONE, 499, NoToken.CLIENT_GONE, None),
        (Outcome.OK, 200, NoToken.EMPTY, None),
    ],
)
async def test_no_first_token_by_reason(
    metrics: Metrics,
    streamed: Streamed,
    scrape: Scrape,
    outcome: Outcome,
    status: int,
    reason: NoToken,
    slo: str | None,
) -> None:
    metrics.observe(
        streamed(outcome=outcome, status=status, no_token=reason, usage=None, gaps=(), marks=FAILED)
    )
    read = await scrape(metrics)
    assert read("gateway_no_first_token_total", **SERVED, reason=reason.value) == 1
    assert read("gateway_requests_total", **SERVED, api="chat", outcome=outcome.value) == 1
    assert read("gateway_time_to_first_token_seconds_count", **SERVED, api="chat") is None
    results = {
        result: read("gateway_slo_total", model="llama", arm="chunk-512", result=result)
        for result in ("met", "missed")
    }
    assert results == {"met": 0, "missed": 1 if slo else 0}


@pytest.mark.parametrize(
    ("first_token", "result"), [(100.510, "met"), (100.511, "missed"), (100.2, "met")]
)
async def test_objective_met_or_missed(
    metrics: Metrics, streamed: Streamed, scrape: Scrape, first_token: float, result: str
) -> None:
    metrics.observe(streamed(marks={"first_token": first_token, "body_complete": 100.01}))
    read = await scrape(metrics)
    assert read("gateway_slo_total", model="llama", arm="chunk-512", result=result) == 1


async def test_a_stream_cut_after_its_token_keeps_its_ttft(
    metrics: Metrics, streamed: Streamed, scrape: Scrape
) -> None:
    metrics.observe(streamed(outcome=Outcome.BACKEND_ERROR))
    read = await scrape(metrics)
    assert read("gateway_time_to_first_token_seconds_count", **SERVED, api="chat") == 1
    assert read("gateway_slo_total", model="llama", arm="chunk-512", result="met") == 1


async def test_no_objective_no_slo_series(
    metrics: Metrics, streamed: Streamed, scrape: Scrape
) -> None:
    metrics.observe(streamed(model="qwen", assigned_arm="only", arm="only", backend="vllm-c"))
    read = await scrape(metrics)
    assert read("gateway_slo_total", model="qwen", arm="only", result="met") is None


async def test_a_forced_request_is_served_traffic(
    metrics: Metrics, streamed: Streamed, scrape: Scrape
) -> None:
    metrics.observe(streamed(forced=True))
    read = await scrape(metrics)
    assert read("gateway_slo_total", model="llama", arm="chunk-512", result="met") == 1
    assert read("gateway_time_to_first_token_seconds_count", **SERVED, api="chat") == 1


async def test_a_failover_links_the_two_arms(
    metrics: Metrics, streamed: Streamed, scrape: Scrape
) -> None:
    metrics.observe(streamed(arm="chunk-64", backend="vllm-b", tried=("vllm-a",)))
    metrics.observe(streamed())
    read = await scrape(metrics)
    labels = {"model": "llama", "assigned_arm": "chunk-512", "served_arm": "chunk-64"}
    assert read("gateway_failovers_total", **labels) == 1
    served = {"model": "llama", "arm": "chunk-64", "backend": "vllm-b"}
    assert read("gateway_time_to_first_token_seconds_count", **served, api="chat") == 1


async def test_turned_away_before_any_backend_counts_for_the_assigned_arm(
    metrics: Metrics, streamed: Streamed, scrape: Scrape
) -> None:
    nobody = {**FAILED, "admitted": None, "sent": None, "upstream_headers": None}
    metrics.observe(
        streamed(
            outcome=Outcome.GATEWAY_ERROR,
            status=503,
            no_token=NoToken.GATEWAY_ERROR,
            arm="",
            backend="",
            marks=nobody,
        )
    )
    read = await scrape(metrics)
    labels = {"model": "llama", "arm": "chunk-512", "backend": "unknown"}
    assert read("gateway_no_first_token_total", **labels, reason="gateway_error") == 1
    assert read("gateway_slo_total", model="llama", arm="chunk-512", result="missed") == 1
    failover = {"model": "llama", "assigned_arm": "chunk-512", "served_arm": ""}
    assert read("gateway_failovers_total", **failover) is None


async def test_a_thousand_typos_are_one_series(
    metrics: Metrics, streamed: Streamed, scrape: Scrape
) -> None:
    """litellm#12159: every mistyped model name minted a series of its own."""
    for number in range(1000):
        metrics.observe(
            streamed(
                model=f"lama-{number}",
                requested_model=f"lama-{number}",
                assigned_arm=f"arm-{number}",
                arm=f"served-{number}",
                backend=f"backend-{number}",
                outcome=Outcome.REJECTED,
                status=404,
            )
        )
    read = await scrape(metrics)
    unknown = {"model": "unknown", "arm": "unknown", "backend": "unknown"}
    assert read("gateway_requests_total", **unknown, api="chat", outcome="rejected") == 1000
    text = b"".join([part async for part in metrics.render()])
    assert b"lama-" not in text and b"arm-" not in text.replace(b"arm-512", b"")
    assert b"backend-" not in text and b"served-" not in text


async def test_what_rarely_happens_is_counted_from_0(metrics: Metrics, scrape: Scrape) -> None:
    read = await scrape(metrics)
    failed = {**SERVED, "api": "messages", "outcome": "timeout"}
    assert read("gateway_requests_total", **failed) == 0
    assert read("gateway_requests_total", **{**failed, "outcome": "ok"}) is None
    assert read("gateway_no_first_token_total", **SERVED, reason="client_gone") == 0
    failover = {"model": "llama", "assigned_arm": "chunk-64", "served_arm": "chunk-512"}
    assert read("gateway_failovers_total", **failover) == 0
    assert read("gateway_failovers_total", **{**failover, "served_arm": "only"}) is None
    assert read("gateway_slo_total", model="llama", arm="chunk-64", result="missed") == 0
    assert read("gateway_slo_total", model="qwen", arm="only", result="missed") is None


def test_many_models_are_taken_over_at_once(metrics: Metrics, table: Any) -> None:
    """A reload does so on the event loop, where open streams wait for it."""
    table.routes |= {f"m{number}": table.routes["llama"] for number in range(3000)}
    began = time.perf_counter()
    metrics.use(table, [])
    assert time.perf_counter() - began < 1
