"""What engines tell of themselves, asked when their backend comes up, beside the probes."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Any

import httpx
import pytest

from gateway.engines.engines import Engines
from gateway.engines.http import LONGEST_ANSWER
from gateway.records import EngineFacts
from gateway.settings import BackendSettings
from tests.engines.fakes import FakeBackend, nothing_of

MODELS: dict[str, Any] = {
    "data": [{"id": "adapter", "max_model_len": 1}, {"id": "up/m", "max_model_len": 8192}]
}
VERSION = {"version": "0.32.0"}

LISTING: dict[str, Any] = {
    "paths": {"/v1/chat/completions": {"post": {}}, "/v1/completions": {}, "/health": {}}
}
LISTED = frozenset({"chat", "completions"})

Answer = Callable[[httpx.Request], Awaitable[httpx.Response]]


class Bench:
    """Backend `x` of model `m`, which engines call `up/m`, and the requests it got."""

    def __init__(self, answer: Answer, timeout: float = 5.0) -> None:
        self.seen: list[httpx.Request] = []
        self.backend = FakeBackend()

        async def note(request: httpx.Request) -> httpx.Response:
            self.seen.append(request)
            return await answer(request)

        client = httpx.AsyncClient(transport=httpx.MockTransport(note))
        self.engines = Engines(
            lambda model: f"up/{model}",
            lambda model: [self.backend],
            nothing_of,
            lambda _: client,
            timeout,
        )

    async def probe(self) -> EngineFacts | None:
        """What is known once a probe has succeeded and the engine has answered."""
        self.engines.healthy(self.backend)
        await asyncio.gather(*self.engines._open.values())
        return self.backend.facts


def telling(models: Any = MODELS, version: Any = VERSION) -> Answer:
    async def answer(request: httpx.Request) -> httpx.Response:
        told = {"/p/v1/models": models, "/p/version": version}.get(request.url.path, LISTING)
        return httpx.Response(200, **{"content" if isinstance(told, bytes) else "json": told})

    return answer


async def test_the_model_it_serves_and_its_version_are_learnt() -> None:
    bench = Bench(telling())
    async with bench.engines:
        assert await bench.probe() == EngineFacts("0.32.0", 8192, LISTED)
    assert [str(one.url) for one in bench.seen] == [
        "http://h:1/p/v1/models",
        "http://h:1/p/version",
        "http://h:1/p/openapi.json",
        "http://h:1/p/metrics",
        "http://h:1/p/server_info?config_format=json",
    ]
    assert {one.headers["authorization"] for one in bench.seen} == {"Bearer s3cret"}


async def test_it_is_asked_once_and_again_after_it_was_down() -> None:
    bench = Bench(telling())
    async with bench.engines:
        for _ in range(3):
            await bench.probe()
        asked = ["/p/v1/models", "/p/version", "/p/openapi.json", "/p/metrics", "/p/server_info"]
        assert [one.url.path for one in bench.seen] == [*asked, "/p/metrics"], "one scrape is due"
        bench.backend.probe_failures = 1
        await bench.probe()
        assert [one.url.path for one in bench.seen[6:]] == asked


@pytest.mark.parametrize(
    ("models", "version", "expected"),
    [
        ({"data": [{"id": "up/m"}]}, VERSION, EngineFacts("0.32.0", None, LISTED)),
        (
            {"data": [{"id": "up/m", "max_model_len": 0}]},
            VERSION,
            EngineFacts("0.32.0", None, LISTED),
        ),
        (
            {"data": [{"id": "up/m", "max_model_len": "x"}]},
            VERSION,
            EngineFacts("0.32.0", None, LISTED),
        ),
        (MODELS, {"detail": "Not Found"}, EngineFacts("", 8192, LISTED)),
        (MODELS, {"version": "9" * 500}, EngineFacts("9" * 64, 8192, LISTED)),
        (b"<html>", b"\xff", EngineFacts("", None, LISTED)),
        (b'{"x":' + b"[" * 100_000, VERSION, EngineFacts("0.32.0", None, LISTED)),
        (b"[" * (LONGEST_ANSWER + 1), VERSION, EngineFacts("0.32.0", None, LISTED)),
    ],
)
async def test_what_it_does_not_tell_stays_unknown(
    models: Any, version: Any, expected: EngineFacts
) -> None:
    bench = Bench(telling(models, version))
    async with bench.engines:
        assert await bench.probe() == expected
        await bench.probe()
        assert len(bench.seen) == 6, "the sixth is the scrape: there is nothing more to learn"


async def test_a_server_without_these_routes_is_asked_only_once() -> None:
    async def nothing(request: httpx.Request) -> httpx.Response:
        return httpx.Response(404, json={"detail": "x"})

    bench = Bench(nothing)
    async with bench.engines:
        assert await bench.probe() == EngineFacts("", None, None)
        await bench.probe()  # which scrapes it, once
        asked = len(bench.seen)
        bench.engines._work._interval = 0.0
        await bench.probe()
    assert len(bench.seen) == asked


async def test_a_model_the_engine_does_not_serve_is_told(caplog: pytest.LogCaptureFixture) -> None:
    bench = Bench(telling({"data": [{"id": "other", "max_model_len": 5}]}))
    async with bench.engines:
        assert await bench.probe() == EngineFacts("0.32.0", None, LISTED, other_models=("other",))
    (record,) = [one for one in caplog.records if one.levelno == logging.WARNING]
    assert record.message == (
        "backend x serves no model up/m but other: see upstream_model of model m"
    )


async def test_an_engine_that_fails_is_asked_at_the_next_probe() -> None:
    answers: list[httpx.Response | Exception] = [
        httpx.Response(500),
        httpx.Response(200, json=MODELS),
        httpx.ConnectError("gone"),
    ]

    async def answer(request: httpx.Request) -> httpx.Response:
        if not answers:
            return await telling()(request)
        one = answers.pop(0)
        if isinstance(one, Exception):
            raise one
        return one

    bench = Bench(answer)
    async with bench.engines:
        assert await bench.probe() is None
        assert await bench.probe() is None
        assert await bench.probe() == EngineFacts("0.32.0", 8192, LISTED)


async def test_a_slow_engine_is_given_up_and_not_asked_twice_at_a_time() -> None:
    async def hang(request: httpx.Request) -> httpx.Response:
        await asyncio.Event().wait()
        raise AssertionError

    bench = Bench(hang, timeout=0.05)
    async with bench.engines:
        bench.engines.healthy(bench.backend)
        assert await bench.probe() is None
    assert len(bench.seen) == 1


async def test_the_end_waits_for_no_answer() -> None:
    async def hang(request: httpx.Request) -> httpx.Response:
        await asyncio.Event().wait()
        raise AssertionError

    bench = Bench(hang)
    async with asyncio.timeout(1), bench.engines:
        bench.engines.healthy(bench.backend)
        await asyncio.sleep(0.01)
    assert not bench.engines._open


PAGE = """\
vllm:cache_config_info{block_size="16",num_gpu_blocks="100",enable_prefix_caching="True"} 1.0
vllm:time_to_first_token_seconds_sum 1.0
vllm:time_to_first_token_seconds_count 10
"""
INFO = {"vllm_config": {"scheduler_config": {"max_num_batched_tokens": 512, "max_num_seqs": 128}}}


async def test_the_token_budget_may_take_its_time() -> None:
    """vLLM looks at the whole machine for its first answer."""

    async def answer(request: httpx.Request) -> httpx.Response:
        if request.url.path == "/p/server_info":
            await asyncio.sleep(0.3)
            return httpx.Response(200, json=INFO)
        return await telling()(request)

    bench = Bench(answer, timeout=0.1)
    async with bench.engines:
        facts = await bench.probe()
    assert facts is not None and facts.max_num_batched_tokens == 512


class Engine:
    """An engine that tells its caches and, in development mode, its token budget."""

    def __init__(self, info: Any = INFO) -> None:
        self.page, self.info = PAGE, info

    async def __call__(self, request: httpx.Request) -> httpx.Response:
        if request.url.path == "/p/metrics":
            return httpx.Response(200, text=self.page)
        if request.url.path == "/p/server_info":
            return (
                self.info
                if isinstance(self.info, httpx.Response)
                else httpx.Response(200, json=self.info)
            )
        return await telling()(request)


@pytest.mark.parametrize(
    ("info", "budget"),
    [
        (INFO, 512),
        ({"vllm_config": "VllmConfig(…)"}, None),
        ({"vllm_config": {"scheduler_config": {"max_num_batched_tokens": "many"}}}, None),
        ({"vllm_config": {}}, None),
        (httpx.Response(404), None),
        (httpx.Response(500), None),
    ],
)
async def test_what_runs_is_learnt_from_its_page_and_its_server_info(
    info: Any, budget: int | None
) -> None:
    bench = Bench(Engine(info))
    async with bench.engines:
        facts = await bench.probe()
    assert facts is not None
    assert (facts.block_size, facts.cache_tokens, facts.prefix_caching) == (16, 1600, True)
    assert (facts.max_num_batched_tokens, facts.version) == (budget, "0.32.0")


async def test_an_engine_that_runs_otherwise_than_declared_is_told_once(
    caplog: pytest.LogCaptureFixture,
) -> None:
    bench = Bench(Engine())
    bench.backend.settings = BackendSettings.model_validate(
        {"url": "http://h:1/p", "engine": {"max_num_batched_tokens": 2048, "block_size": 16}}
    )
    async with bench.engines:
        for _ in range(2):
            bench.backend.probe_failures = 1
            await bench.probe()
    (record,) = [one for one in caplog.records if one.levelno == logging.WARNING]
    assert record.message == (
        "backend x is not as declared: "
        "max_num_batched_tokens is declared as 2048, the engine runs 512"
    )


async def test_a_restart_between_two_probes_is_noticed_by_its_counters() -> None:
    engine = Engine()
    bench = Bench(engine)
    bench.engines._work._interval = 0.0
    async with bench.engines:
        await bench.probe()
        await bench.probe()
        engine.page = PAGE.replace("count 10", "count 1").replace('"16"', '"32"')
        await bench.probe()
        facts = await bench.probe()
    assert facts is not None and facts.block_size == 32


async def test_a_slow_budget_holds_up_no_other_fact() -> None:
    """vLLM looks at the whole machine before it first tells its scheduler's settings."""
    looked = asyncio.Event()

    async def answer(request: httpx.Request) -> httpx.Response:
        if request.url.path == "/p/server_info":
            await looked.wait()
        return await Engine()(request)

    bench = Bench(answer)
    async with bench.engines:
        bench.engines.healthy(bench.backend)
        async with asyncio.timeout(5):
            while bench.backend.facts is None:
                await asyncio.sleep(0.001)
        facts = bench.backend.facts
        assert (facts.block_size, facts.max_num_batched_tokens) == (16, None)
        looked.set()
        later = await bench.probe()
    assert later is not None and (later.block_size, later.max_num_batched_tokens) == (16, 512)
