from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from gateway.keys.keyring import Key
from gateway.records import Outcome, Record, Refusal, Usage
from gateway.telemetry.by_key import FORMER_KEYS, KeyUse
from gateway.telemetry.metrics import Metrics

Read = Callable[..., float | None]
Scrape = Callable[[Metrics], Awaitable[Read]]
Streamed = Callable[..., Record]


def refused(streamed: Streamed, refusal: Refusal, **changes: Any) -> Record:
    facts = {"status": 429, "outcome": Outcome.REJECTED, "usage": None, **changes}
    return streamed(refusal=refusal, **facts)


async def test_requests_and_tokens_by_key_and_model(
    metrics: Metrics, streamed: Streamed, scrape: Scrape
) -> None:
    metrics.observe(streamed(usage=Usage(prompt=1600, cached=1024, completion=40)))
    metrics.observe(streamed(usage=Usage(prompt=400, cached=16, completion=2), model="qwen"))
    metrics.observe(streamed(usage=Usage(prompt=100, completion=3), key="ci", model="qwen"))
    metrics.observe(streamed(outcome=Outcome.TIMEOUT, usage=None))
    read = await scrape(metrics)
    told = {
        (name, key, model): read(f"gateway_key_{name}_total", key=key, model=model)
        for name in ("prompt_tokens", "cached_prompt_tokens", "completion_tokens")
        for key, model in (("dev", "llama"), ("dev", "qwen"), ("ci", "qwen"))
    }
    assert told == {
        ("prompt_tokens", "dev", "llama"): 1600,
        ("prompt_tokens", "dev", "qwen"): 400,
        ("prompt_tokens", "ci", "qwen"): 100,
        ("cached_prompt_tokens", "dev", "llama"): 1024,
        ("cached_prompt_tokens", "dev", "qwen"): 16,
        ("cached_prompt_tokens", "ci", "qwen"): 0,
        ("completion_tokens", "dev", "llama"): 40,
        ("completion_tokens", "dev", "qwen"): 2,
        ("completion_tokens", "ci", "qwen"): 3,
    }
    requests = "gateway_key_requests_total"
    assert read(requests, key="dev", model="llama", outcome="ok") == 1
    assert read(requests, key="dev", model="llama", outcome="timeout") == 1
    assert read(requests, key="ci", model="qwen", outcome="ok") == 1


async def test_refusals_by_key_and_reason(
    metrics: Metrics, streamed: Streamed, scrape: Scrape
) -> None:
    for refusal in (Refusal.REQUESTS_PER_MINUTE, Refusal.REQUESTS_PER_MINUTE, Refusal.QUEUE_LIMIT):
        metrics.observe(refused(streamed, refusal, key="ci"))
    metrics.observe(streamed())
    read = await scrape(metrics)
    name = "gateway_key_rejections_total"
    assert read(name, key="ci", reason="requests_per_minute") == 2
    assert read(name, key="ci", reason="queue_limit") == 1
    assert read(name, key="dev", reason="queue_limit") == 0
    assert read("gateway_key_requests_total", key="ci", model="llama", outcome="rejected") == 3


async def test_what_a_key_may_use_and_exceed_is_counted_from_0(
    metrics: Metrics, scrape: Scrape
) -> None:
    """A rate begins at the first scrape: a burst before it would be in none."""
    read = await scrape(metrics)
    name = "gateway_key_rejections_total"
    assert read(name, key="ci", reason="requests_per_minute") == 0
    assert read(name, key="ci", reason="max_concurrency") == 0
    assert read(name, key="ci", reason="tokens_per_minute") is None
    assert read(name, key="dev", reason="request") == 0
    assert read(name, key="dev", reason="invalid_key") is None
    assert read(name, key="unknown", reason="invalid_key") == 0
    for key, model, value in (("dev", "llama", 0), ("ci", "qwen", 0), ("ci", "llama", None)):
        assert read("gateway_key_prompt_tokens_total", key=key, model=model) == value
        read_requests = read("gateway_key_requests_total", key=key, model=model, outcome="ok")
        assert read_requests == value


async def test_without_a_valid_key_it_is_unknown(
    metrics: Metrics, streamed: Streamed, scrape: Scrape
) -> None:
    nobody = {"model": "unknown", "assigned_arm": "", "arm": "", "backend": "", "status": 401}
    for _ in range(3):
        metrics.observe(refused(streamed, Refusal.INVALID_KEY, key="", **nobody))
    read = await scrape(metrics)
    assert read("gateway_key_rejections_total", key="unknown", reason="invalid_key") == 3
    labels = {"key": "unknown", "model": "unknown", "outcome": "rejected"}
    assert read("gateway_key_requests_total", **labels) == 3


def test_totals_of_each_key_since_the_start(metrics: Metrics, streamed: Streamed) -> None:
    metrics.observe(streamed(usage=Usage(prompt=1600, cached=1024, completion=40)))
    metrics.observe(streamed(usage=Usage(prompt=400, cached=16, completion=2), model="qwen"))
    metrics.observe(refused(streamed, Refusal.MAX_CONCURRENCY, key="ci"))
    metrics.observe(refused(streamed, Refusal.INVALID_KEY, key=""))
    totals = metrics.by_key.totals()
    assert totals["dev"] == KeyUse(2, 2000, 1040, 42)
    assert (totals["ci"].requests, totals["ci"].refused) == (1, {"max_concurrency": 1})
    assert (totals["unknown"].requests, totals["unknown"].refused) == (1, {"invalid_key": 1})


async def test_a_removed_key_keeps_its_counters_for_the_last_scrapes(
    metrics: Metrics, table: Any, streamed: Streamed, scrape: Scrape
) -> None:
    metrics.use(table, [])
    metrics.observe(streamed())  # it was under way
    read = await scrape(metrics)
    assert read("gateway_key_requests_total", key="dev", model="llama", outcome="ok") == 1


async def test_keys_that_are_rotated_for_ever_do_not_add_up(
    metrics: Metrics, table: Any, streamed: Streamed, scrape: Scrape
) -> None:
    for number in range(2 * FORMER_KEYS):
        name = f"ci-{number}"
        metrics.use(table, [Key("1", "dev"), Key("2", name, requests_per_minute=60)])
        metrics.observe(streamed(key=name))
        metrics.observe(refused(streamed, Refusal.REQUESTS_PER_MINUTE, key=name))
    # The one in force, those that were removed last, dev, and unknown.
    assert len(metrics.by_key.totals()) == FORMER_KEYS + 3
    text = b"".join([part async for part in metrics.render()]).decode()
    newest = 2 * FORMER_KEYS - 1
    oldest = newest - FORMER_KEYS
    assert f'key="ci-{oldest}"' in text and f'key="ci-{oldest - 1}"' not in text
    lines_of_one = text.count(f'key="ci-{newest}"')
    assert text.count('key="ci-') == lines_of_one * (FORMER_KEYS + 1)
    metrics.observe(streamed(key="ci-0"))
    read = await scrape(metrics)
    assert read("gateway_key_requests_total", key="unknown", model="llama", outcome="ok") == 1


async def test_a_key_that_comes_back_goes_on_counting(
    metrics: Metrics, table: Any, streamed: Streamed
) -> None:
    metrics.observe(streamed())
    metrics.use(table, [])
    metrics.use(table, [Key("9", "dev")])
    metrics.observe(streamed())
    assert metrics.by_key.totals()["dev"].requests == 2


@pytest.mark.parametrize("refusal", Refusal)
def test_every_reason_is_counted(metrics: Metrics, streamed: Streamed, refusal: Refusal) -> None:
    metrics.observe(refused(streamed, refusal))
    assert metrics.by_key.totals()["dev"].refused == {refusal: 1}
