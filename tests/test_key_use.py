"""What each key has used, as a running gateway tells it: refusals by the limit, tokens, reloads."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from prometheus_client.parser import text_string_to_metric_families

from tests.support.apis import CHAT
from tests.support.running import ADMIN_KEY, KEY
from tests.support.site import Site, answers, silent, site, until

PROMPT, CACHED, COMPLETION = 7, 4, 2
"""Tokens of the answer that the backends play."""


def key(name: str) -> str:
    return f"sk-test-{name:-<24}"


def entry(name: str, **limits: Any) -> dict[str, Any]:
    return {"name": name, "key": key(name), **limits}


@pytest.fixture
async def at(tmp_path: Path) -> AsyncIterator[Site]:
    keys = [
        {"name": "dev", "key": KEY},
        entry("rpm", requests_per_minute=1),
        entry("tpm", tokens_per_minute=1),
        entry("lone", max_concurrency=1),
        entry("narrow", models=["other"]),
        entry("bound", arms="none"),
    ]
    async with site(tmp_path, "protocol", keys=keys) as it:
        it.configure()
        it.play(answers(CHAT))
        yield it


async def ask(at: Site, name: str, **headers: str) -> int:
    headers = {"authorization": f"Bearer {key(name)}", **headers}
    return (await at.ask(CHAT, headers=headers)).status_code


async def told(at: Site) -> dict[str, dict[str, Any]]:
    """What the admin API says that each key has used."""
    headers = {"authorization": f"Bearer {ADMIN_KEY}"}
    found = (await at.client.get("/admin/v1/keys", headers=headers)).json()
    return {one["name"]: one["used"] for one in found}


async def refusals(at: Site) -> dict[tuple[str, str], float]:
    """By key and reason, as the metrics have them; only those that came up."""
    page = (await at.client.get("/metrics")).text
    return {
        (sample.labels["key"], sample.labels["reason"]): sample.value
        for family in text_string_to_metric_families(page)
        for sample in family.samples
        if sample.name == "gateway_key_rejections_total" and sample.value
    }


async def test_tokens_of_a_key(at: Site) -> None:
    for _ in range(3):
        await at.expect_good(CHAT)
    await at.record(3)
    assert (await told(at))["dev"] == {
        "requests": 3,
        "prompt_tokens": 3 * PROMPT,
        "cached_prompt_tokens": 3 * CACHED,
        "completion_tokens": 3 * COMPLETION,
        "refused": {},
    }


async def test_each_limit_is_told_by_its_name(at: Site) -> None:
    for name in ("rpm", "tpm"):
        assert [await ask(at, name) for _ in range(3)] == [200, 429, 429]
    assert await ask(at, "narrow") == 403
    assert await ask(at, "bound", **{"x-gateway-arm": "a0"}) == 403
    assert await ask(at, "stranger") == 401
    assert (await at.client.post(CHAT.path, content=b"{")).status_code == 400
    await at.record(10)
    wanted = {
        ("rpm", "requests_per_minute"): 2,
        ("tpm", "tokens_per_minute"): 2,
        ("narrow", "model_not_allowed"): 1,
        ("bound", "arm_not_allowed"): 1,
        ("unknown", "invalid_key"): 1,
        ("dev", "request"): 1,
    }
    assert await refusals(at) == wanted
    used = await told(at)
    assert used["rpm"]["requests"] == 3
    of_api = {(name, why): n for name in used for why, n in used[name]["refused"].items()}
    del wanted["unknown", "invalid_key"]
    assert of_api == wanted


async def test_what_is_full_is_told_by_its_name(at: Site) -> None:
    place = {"url": at.backends[0].url, "max_concurrency": 1}
    at.configure(backends={"b0": place}, admission={"queue_limit": 1, "queue_timeout": 0.3})
    at.play(silent)
    running = asyncio.ensure_future(ask(at, "lone"))
    await until(lambda: at.backends[0].requests)
    assert await ask(at, "lone") == 429
    waiting = asyncio.ensure_future(ask(at, "bound"))
    gate = at.gateway.context.gate_of(at.gateway.context.table.routes["m"])
    await until(lambda: gate.depth == 1)
    assert (await at.ask(CHAT)).status_code == 503
    assert await waiting == 503
    running.cancel()
    await at.record(4)
    assert await refusals(at) == {
        ("lone", "max_concurrency"): 1,
        ("dev", "queue_limit"): 1,
        ("bound", "queue_timeout"): 1,
    }


async def test_use_survives_a_reload_and_ends_with_its_key(at: Site) -> None:
    await at.expect_good(CHAT)
    await at.record()
    at.configure(keys=[{"name": "dev", "key": KEY}, entry("new")])
    at.play(answers(CHAT))
    await at.expect_good(CHAT)
    await at.record(2)
    used = await told(at)
    assert {name: one["requests"] for name, one in used.items()} == {"dev": 2, "new": 0}
