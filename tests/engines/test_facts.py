"""What engines tell of themselves, asked when their backend comes up, beside the probes."""

from __future__ import annotations

import asyncio
import logging
from typing import Any

import httpx
import pytest

from gateway.engines.http import LONGEST_ANSWER
from gateway.records import EngineFacts
from tests.engines.bench import LISTED, MODELS, VERSION, Bench, telling


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
