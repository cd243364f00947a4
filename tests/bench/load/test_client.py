"""The load client against a backend whose schedule is known."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

import pytest

from gateway.bench.load.client import LoadClient
from gateway.bench.load.reading import sample_of
from gateway.bench.results import ErrorKind, Sample
from gateway.records import Api
from tests.support.apis import DIALECTS, Dialect
from tests.support.ports import nobody, rude
from tests.support.scripted import SSE_HEAD, Received, ScriptedBackend, chunk, reply, scripted
from tests.support.site import every_api, refuses, says, silent, streams

Script = Callable[[Received, asyncio.StreamWriter], Awaitable[None]]

LATE = 0.1
"""Seconds to the first token; the machine may add some."""
SLACK = 0.06
TICK = 0.002
"""The backend's own timers count in milliseconds."""


def paced(dialect: Dialect) -> Script:
    """Announces at once, brings the first token after `LATE`, the second after twice that."""

    async def script(request: Received, writer: asyncio.StreamWriter) -> None:
        writer.write(SSE_HEAD + chunk(b"".join(dialect.opening)))
        for token in dialect.tokens:
            await writer.drain()
            await asyncio.sleep(LATE)
            writer.write(chunk(token))
        writer.write(chunk(b"".join(dialect.ending)) + chunk(b""))

    return script


@asynccontextmanager
async def client_of(url: str, timeout: float = 5.0) -> AsyncIterator[LoadClient]:
    async with LoadClient(
        url, "/v1/x", b"authorization: Bearer k\r\n", timeout=timeout, clock=time.monotonic
    ) as client:
        yield client


async def ask(client: LoadClient, api: Api = Api.CHAT, *, late: float = 0.0) -> Sample:
    """One request that was due `late` seconds ago."""
    due = time.monotonic() - late
    return sample_of(await client.ask(b"{}", due, late=late), api, origin=due - 1)


async def sample(script: Script, api: Api = Api.CHAT, timeout: float = 5.0) -> Sample:
    async with scripted(script) as backend, client_of(backend.url, timeout) as client:
        return await ask(client, api)


@every_api
async def test_the_first_token_is_timed_and_not_what_announces_it(dialect: Dialect) -> None:
    found = await sample(paced(dialect), dialect.api)
    assert found.error is None, found.detail
    assert found.ttft_ms is not None and found.e2e_ms is not None
    assert 1000 * (LATE - TICK) <= found.ttft_ms <= 1000 * (LATE + SLACK)
    (gap,) = found.itl_ms
    assert 1000 * (LATE - SLACK) <= gap <= 1000 * (LATE + SLACK)
    assert found.e2e_ms >= 2000 * (LATE - TICK)
    assert found.due_ms == 1000
    assert (found.prompt_tokens, found.cached_tokens, found.completion_tokens) == (7, 4, 2)


async def test_a_late_start_counts_against_the_server_and_as_the_clients_cost() -> None:
    async with scripted(paced(DIALECTS[0])) as backend, client_of(backend.url) as client:
        found = await ask(client, late=0.5)
    assert found.ttft_ms is not None
    assert 598 <= found.ttft_ms <= 600 + 1000 * SLACK
    assert 500 <= found.client_ms <= 500 + 1000 * SLACK


async def test_the_request_has_its_headers_and_says_how_long_it_is() -> None:
    async with scripted(paced(DIALECTS[0])) as backend, client_of(backend.url + "/api") as client:
        await client.ask(b'{"a":1}', time.monotonic(), b"x-gateway-arm: a\r\n")
    (request,) = backend.requests
    assert request.target == "/api/v1/x" and request.body == b'{"a":1}'
    assert request.headers["authorization"] == "Bearer k"
    assert request.headers["x-gateway-arm"] == "a"
    assert request.headers["host"] == f"127.0.0.1:{backend.port}"


async def test_connections_are_kept() -> None:
    async with scripted(paced(DIALECTS[0])) as backend, client_of(backend.url) as client:
        for _ in range(3):
            assert (await ask(client)).error is None
    assert backend.connections == 1


async def test_a_kept_connection_that_was_closed_meanwhile_is_no_failure() -> None:
    async def once(request: Received, writer: asyncio.StreamWriter) -> None:
        await streams(*DIALECTS[0].frames)(request, writer)
        await writer.drain()
        asyncio.get_running_loop().call_later(0.01, writer.transport.abort)

    async with scripted(once) as backend, client_of(backend.url) as client:
        assert (await ask(client)).error is None
        await asyncio.sleep(0.05)
        assert (await ask(client)).error is None
    assert len(backend.requests) == 2


async def test_who_served_is_read_from_the_head() -> None:
    head = b"x-gateway-arm: small\r\nx-gateway-backend: b1\r\n"
    whole = SSE_HEAD[:-2] + head + b"\r\n" + chunk(b"".join(DIALECTS[0].frames)) + chunk(b"")
    found = await sample(says(whole))
    assert (found.arm, found.backend, found.status) == ("small", "b1", 200)


# What goes wrong

FRAMES = DIALECTS[0].frames
KINDS = [
    ("a status", refuses("429 Too Many Requests", "slow down"), ErrorKind.STATUS, "slow down"),
    (
        "a bare status",
        says(reply(b'{"error":"Unauthorized"}', status="401 Unauthorized")),
        ErrorKind.STATUS,
        "Unauthorized",
    ),
    (
        "cut before a token",
        streams(FRAMES[0], then=says(b"", close=True)),
        ErrorKind.CUT,
        "connection lost",
    ),
    ("cut within", streams(*FRAMES[:2], then=says(b"", close=True)), ErrorKind.CUT, "lost"),
    ("no last event", streams(*FRAMES[:2]), ErrorKind.CUT, "last event"),
    (
        "an error within",
        streams(*FRAMES[:2], DIALECTS[0].error, b"data: [DONE]\n\n"),
        ErrorKind.REPORTED,
        "EngineCore",
    ),
    ("nothing generated", streams(FRAMES[0], *DIALECTS[0].ending), ErrorKind.EMPTY, "token"),
    ("no stream", says(reply(b'{"hello":"there"}')), ErrorKind.MALFORMED, "hello"),
    ("hangs up", says(b"", close=True), ErrorKind.CUT, "connection lost"),
]


@pytest.mark.parametrize(
    ("script", "kind", "words"), [one[1:] for one in KINDS], ids=[one[0] for one in KINDS]
)
async def test_each_failure_has_its_kind(script: Script, kind: ErrorKind, words: str) -> None:
    found = await sample(script)
    assert found.error is kind, found
    assert words in found.detail
    assert found.e2e_ms is None


async def test_an_answer_that_does_not_come_in_time() -> None:
    async with scripted(silent) as backend, client_of(backend.url, 0.1) as client:
        found = await ask(client)
        assert found.error is ErrorKind.TIMEOUT
        assert await left(backend), "the request was not abandoned"


async def left(backend: ScriptedBackend) -> bool:
    async with asyncio.timeout(2):
        return await backend.requests[0].left.wait()


async def test_nobody_listens() -> None:
    with nobody() as url:
        async with client_of(url) as client:
            found = await ask(client)
    assert found.error is ErrorKind.CONNECT and found.status == 0


async def test_a_port_that_closes_at_once() -> None:
    async with rude(reset=True) as url, client_of(url) as client:
        assert (await ask(client)).error in (ErrorKind.CUT, ErrorKind.CONNECT)


async def test_a_token_read_before_the_cut_does_not_make_a_complete_reply() -> None:
    found = await sample(streams(*FRAMES[:2], then=says(b"", close=True)))
    assert found.error is ErrorKind.CUT
    assert found.ttft_ms is not None and found.e2e_ms is None


async def test_the_end_of_the_stream_is_enough_where_only_framing_is_cut() -> None:
    found = await sample(streams(*FRAMES, then=says(b"", close=True)))
    assert found.error is None
