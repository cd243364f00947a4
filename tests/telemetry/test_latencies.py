"""Histograms of time: from which mark to which, in which stratum, and of which exchanges."""

from __future__ import annotations

from array import array
from collections.abc import Awaitable, Callable

import pytest

from gateway.records import Api, NoToken, Record, Usage
from gateway.telemetry.metrics import Metrics
from tests.telemetry.conftest import SERVED

Read = Callable[..., float | None]
Scrape = Callable[[Metrics], Awaitable[Read]]
Streamed = Callable[..., Record]


async def test_each_latency_from_its_mark_to_its_mark(
    metrics: Metrics, streamed: Streamed, scrape: Scrape
) -> None:
    metrics.observe(streamed())
    read = await scrape(metrics)
    chat = {**SERVED, "api": "chat"}
    for name, labels, seconds in (
        ("gateway_time_to_first_token_seconds", chat, 0.325),
        ("gateway_upstream_time_to_first_token_seconds", chat, 0.300),
        ("gateway_time_to_first_byte_seconds", SERVED, 0.040),
        ("gateway_request_duration_seconds", {**chat, "stream": "true"}, 0.400),
        ("gateway_queue_seconds", {"model": "llama", "arm": "chunk-512"}, 0.020),
        ("gateway_overhead_seconds", {"model": "llama"}, 0.005),
        (
            "gateway_time_to_first_token_by_prompt_seconds",
            {"model": "llama", "arm": "chunk-512", "prompt_tokens": "512-2k"},
            0.325,
        ),
    ):
        assert read(f"{name}_count", **labels) == 1, name
        assert read(f"{name}_sum", **labels) == pytest.approx(seconds), name


async def test_a_latency_counts_from_its_bucket_on(
    metrics: Metrics, streamed: Streamed, scrape: Scrape
) -> None:
    metrics.observe(streamed())
    read = await scrape(metrics)
    bucket = "gateway_time_to_first_token_seconds_bucket"
    labels = {**SERVED, "api": "chat"}
    assert [read(bucket, **labels, le=le) for le in ("0.286", "0.329", "600.0", "+Inf")] == [
        0,
        1,
        1,
        1,
    ]


async def test_gaps_make_the_inter_token_latency(
    metrics: Metrics, streamed: Streamed, scrape: Scrape
) -> None:
    metrics.observe(streamed(gaps=array("f", [0.020, 0.030, 0.250])))
    metrics.observe(streamed(gaps=()))
    read = await scrape(metrics)
    name = "gateway_inter_token_latency_seconds"
    assert read(f"{name}_count", **SERVED) == 3
    assert read(f"{name}_sum", **SERVED) == pytest.approx(0.3)
    assert read(f"{name}_bucket", **SERVED, le="0.0306") == 2


async def test_ttft_is_not_the_total_duration(
    metrics: Metrics, streamed: Streamed, scrape: Scrape
) -> None:
    """litellm#25598: on /v1/messages the published time to first token was the total."""
    metrics.observe(streamed(api=Api.MESSAGES, marks={"last_token": 109.0, "done": 110.0}))
    read = await scrape(metrics)
    labels = {**SERVED, "api": "messages"}
    assert read("gateway_time_to_first_token_seconds_sum", **labels) == pytest.approx(0.325)
    duration = read("gateway_request_duration_seconds_sum", **labels, stream="true")
    assert duration == pytest.approx(10)


async def test_ttft_is_not_taken_from_the_last_chunk(
    metrics: Metrics, streamed: Streamed, scrape: Scrape
) -> None:
    """aibrix#2477."""
    metrics.observe(streamed(marks={"first_token": 100.2, "last_token": 105.0}))
    read = await scrape(metrics)
    ttft = read("gateway_time_to_first_token_seconds_sum", **SERVED, api="chat")
    assert ttft == pytest.approx(0.190)


async def test_an_unstreamed_reply_has_a_duration_and_no_ttft(
    metrics: Metrics, streamed: Streamed, scrape: Scrape
) -> None:
    metrics.observe(streamed(stream=False, gaps=(), marks={"first_token": None}))
    read = await scrape(metrics)
    labels = {**SERVED, "api": "chat"}
    assert read("gateway_request_duration_seconds_count", **labels, stream="false") == 1
    assert read("gateway_request_duration_seconds_count", **labels, stream="true") is None
    assert read("gateway_time_to_first_token_seconds_count", **labels) is None
    assert read("gateway_time_to_first_byte_seconds_count", **SERVED) is None
    assert read("gateway_slo_total", model="llama", arm="chunk-512", result="met") == 0
    assert read("gateway_queue_seconds_count", model="llama", arm="chunk-512") == 1
    assert read("gateway_completion_tokens_total", **SERVED) == 40


@pytest.mark.parametrize(
    ("tokens", "label"),
    [
        (1, "<512"),
        (511, "<512"),
        (512, "512-2k"),
        (2047, "512-2k"),
        (2048, "2k-8k"),
        (8192, "8k-32k"),
        (32768, "8k-32k"),
        (32769, ">32k"),
    ],
)
async def test_ttft_by_prompt_length(
    metrics: Metrics, streamed: Streamed, scrape: Scrape, tokens: int, label: str
) -> None:
    metrics.observe(streamed(usage=Usage(prompt=tokens)))
    read = await scrape(metrics)
    name = "gateway_time_to_first_token_by_prompt_seconds_count"
    assert read(name, model="llama", arm="chunk-512", prompt_tokens=label) == 1


@pytest.mark.parametrize("usage", [None, Usage(completion=5, exact=False)])
async def test_a_prompt_of_unknown_length_is_in_no_stratum(
    metrics: Metrics, streamed: Streamed, scrape: Scrape, usage: Usage | None
) -> None:
    metrics.observe(streamed(usage=usage))
    read = await scrape(metrics)
    name = "gateway_time_to_first_token_by_prompt_seconds_count"
    assert read(name, model="llama", arm="chunk-512", prompt_tokens="<512") is None
    assert read("gateway_time_to_first_token_seconds_count", **SERVED, api="chat") == 1


async def test_the_first_byte_of_an_error_is_none_of_a_stream(
    metrics: Metrics, streamed: Streamed, scrape: Scrape
) -> None:
    marks = {"first_token": None, "last_token": None}
    metrics.observe(streamed(status=400, no_token=NoToken.REJECTED, marks=marks))
    read = await scrape(metrics)
    assert read("gateway_time_to_first_byte_seconds_count", **SERVED) is None


async def test_the_sums_of_one_backend_are_over_all_its_apis(
    metrics: Metrics, streamed: Streamed
) -> None:
    for api in (Api.CHAT, Api.MESSAGES):
        metrics.observe(streamed(api=api))
    own = metrics.own("vllm-a")
    assert (own.ttft.count, own.upstream.count) == (2, 2)
    assert own.ttft.sum > own.upstream.sum > 0
    assert metrics.own("vllm-b").ttft.count == 0
