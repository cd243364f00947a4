"""Cache and memory over time: counters since the start, and between two scrapes; and the cause."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from gateway.cli.doctor.finding import Finding, Severity
from tests.cli.doctor.cases import case, found, gateway_yaml, one, other
from tests.cli.doctor.test_ttft import FINE, page
from tests.support.forward_proxy import forward_proxy
from tests.support.ports import nobody

OLD = {"prefix_cache_queries_total": 1_000_000, "request_success_total": 1000}
GOOD = {**OLD, "prefix_cache_hits_total": 990_000, "num_preemptions_total": 7}
BAD = {**OLD, "prefix_cache_hits_total": 100_000}
PROMPTS = {"prompt_tokens_total": 1_000_000}


NOT_FOUND = b"HTTP/1.1 404 Not Found\r\ncontent-length: 0\r\n\r\n"


def later(
    before: dict[str, Any], *, hits: int, queries: int = 50_000, **more: Any
) -> dict[str, Any]:
    """The counters some seconds on."""
    return {
        **before,
        "prefix_cache_queries_total": before["prefix_cache_queries_total"] + queries,
        "prefix_cache_hits_total": before["prefix_cache_hits_total"] + hits,
        "request_success_total": before["request_success_total"] + 50,
        **more,
    }


async def watched(
    home: Path, tmp_path: Path, *pages: dict[str, Any], **changes: Any
) -> tuple[list[Finding], list[float]]:
    """What is found of an engine with these metrics, one page after the other, and the waits."""
    left: Iterator[bytes] = iter([page(**one) for one in pages])
    waits: list[float] = []

    def answer(target: str, head: str) -> bytes:
        return next(left) if target == "/metrics" else NOT_FOUND

    async with other(answer) as engine:
        backends = {"b0": {"url": engine.url, "engine": FINE, **changes.pop("backend", {})}}
        file = gateway_yaml(tmp_path, engine.url, backends=backends)
        with nobody() as gone:
            the = case(gone, home, config=file, sleep=waits.append, **changes)
            return await found(the, "ttft"), waits


@pytest.mark.parametrize(
    ("pages", "watch", "waited", "seen"),
    [
        ([BAD], None, [], "10 % of prompt tokens were found in the prefix cache since its start"),
        ([BAD, later(BAD, hits=49_000)], 30.0, [30.0], "fine in the last 30 s"),
        (
            [GOOD | {"num_requests_running": 2}, later(GOOD, hits=10_000)],
            None,
            [5.0],
            "20 % of prompt tokens were found in the prefix cache in the last 5 s",
        ),
        ([BAD | {"num_requests_waiting": 1}], 0.0, [], "since its start"),
        ([BAD, later(BAD, hits=9, queries=10)], 5.0, [5.0], "10 % of prompt tokens"),
        ([BAD, later(BAD, hits=-100_000, queries=-980_000)], 5.0, [5.0], "0 % of prompt tokens"),
    ],
    ids=["idle", "it was bad", "it is bad", "not to watch", "too little to judge", "a restart"],
)
async def test_the_hit_rate_is_that_of_now_where_it_can_be(
    home: Path,
    tmp_path: Path,
    pages: list[dict[str, Any]],
    watch: float | None,
    waited: list[float],
    seen: str,
) -> None:
    findings, waits = await watched(home, tmp_path, *pages, watch=watch)
    assert seen in one(findings).seen
    assert waits == waited


async def test_a_rate_since_the_start_says_how_to_see_that_of_now(
    home: Path, tmp_path: Path
) -> None:
    (since_start,), _ = await watched(home, tmp_path, BAD)
    (lately,), _ = await watched(home, tmp_path, GOOD, later(GOOD, hits=0), watch=1.0)
    assert "--watch 30" in since_start.why and "--watch" not in lately.why


async def test_old_preemptions_are_no_news(home: Path, tmp_path: Path) -> None:
    (before,), _ = await watched(home, tmp_path, GOOD)
    assert "7 preemptions in 1000 requests since its start" in before.seen
    (now,), _ = await watched(home, tmp_path, GOOD, later(GOOD, hits=50_000), watch=2.0)
    assert now.severity is Severity.OK
    more = later(GOOD, hits=50_000, num_preemptions_total=9)
    (again,), _ = await watched(home, tmp_path, GOOD, more, watch=2.0)
    assert "2 preemptions in 50 requests in the last 2 s" in again.seen


@pytest.mark.parametrize(
    ("engine", "why", "fix"),
    [
        (
            {"block_size": "2048", "kv_cache_usage_perc": 0.99},
            "less than a block of 2048",
            "--block-size",
        ),
        ({"kv_cache_usage_perc": 0.96}, "too small for the traffic", "--gpu-memory-utilization"),
        ({"num_preemptions_total": 3}, "too small for the traffic", "--gpu-memory-utilization"),
        ({"kv_cache_usage_perc": 0.2, "block_size": "16"}, "they share little", "# in the client"),
        ({"caching": "False"}, "computes its whole history anew", "--enable-prefix-caching"),
    ],
    ids=["short prompts", "full", "preempting", "nothing shared", "off"],
)
async def test_the_cause_of_a_low_hit_rate(
    home: Path, tmp_path: Path, engine: dict[str, Any], why: str, fix: str
) -> None:
    """In the article's order: off, shorter than a block, memory; what is left is the traffic."""
    findings, _ = await watched(home, tmp_path, BAD | PROMPTS | engine)
    assert why in findings[0].why
    assert findings[0].fix.startswith(fix)


async def test_an_engine_behind_a_proxy_is_asked_by_it(home: Path, tmp_path: Path) -> None:
    async with forward_proxy("pr0xy-pa55word") as proxy:
        findings, _ = await watched(home, tmp_path, BAD, backend={"proxy": proxy.url})
        wrong = proxy.url.replace("pa55word", "wr0ng")
        refused, _ = await watched(home, tmp_path, BAD, backend={"proxy": wrong})
    assert "10 % of prompt tokens" in one(findings).seen
    assert {"/metrics", "/v1/models"} <= set(proxy.paths())
    assert "could not be read from here (HTTP 407)" in one(refused).seen
    assert "pr0xy" not in str(findings + refused)
