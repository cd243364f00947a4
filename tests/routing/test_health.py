"""Probing: each backend by itself, up after one success, down after two failures."""

from __future__ import annotations

import asyncio
import logging
import socket
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import aclosing

import httpx
import pytest

from gateway.routing.backend import Backend
from gateway.routing.health import HttpProbe, Prober
from gateway.routing.table import Table
from gateway.upstream.clients import Clients
from tests.routing.conftest import Clock, MakeTable


class Rounds:
    """A sleep that lets the prober go on only when the test says so."""

    def __init__(self) -> None:
        self._go = asyncio.Semaphore(0)

    async def sleep(self, seconds: float) -> None:
        await self._go.acquire()

    async def next(self) -> None:
        self._go.release()
        await settle()


async def settle() -> None:
    for _ in range(10):
        await asyncio.sleep(0)


class Bench:
    """A running prober whose backends answer what `answers` says."""

    def __init__(self, table: Table, timeout: float) -> None:
        self.table = table
        self.rounds = Rounds()
        self.answers: dict[str, Callable[[], Awaitable[bool]]] = {}
        self.probed: list[str] = []
        self.changed: list[tuple[str, bool]] = []
        self.prober = Prober(
            lambda: self.table.backends.values(),
            self.probe,
            lambda backend: self.changed.append((backend.name, backend.usable())),
            timeout=timeout,
            sleep=self.rounds.sleep,
        )

    async def probe(self, backend: Backend) -> bool:
        self.probed.append(backend.name)
        return await self.answers.get(backend.name, healthy)()


async def healthy() -> bool:
    return True


async def sick() -> bool:
    return False


async def hangs() -> bool:
    await asyncio.Event().wait()
    return True


@pytest.fixture
async def bench(make_table: MakeTable) -> AsyncIterator[Bench]:
    table = make_table({"llama": {"a": (1, ["a1", "a2"]), "b": (1, ["b1"])}})
    bench = Bench(table, timeout=30.0)
    task = asyncio.create_task(bench.prober.run())
    await settle()
    yield bench
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


async def test_the_first_round_comes_at_once_and_confirms(bench: Bench) -> None:
    assert sorted(bench.probed) == ["a1", "a2", "b1"]
    assert all(backend.checked and backend.up for backend in bench.table.backends.values())
    assert bench.changed == []


async def test_down_after_two_failures_in_a_row_and_up_after_one_success(
    bench: Bench, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    backend = bench.table.backends["a1"]
    bench.answers["a1"] = sick
    await bench.rounds.next()
    assert backend.up
    await bench.rounds.next()
    assert not backend.up
    await bench.rounds.next()
    bench.answers["a1"] = healthy
    await bench.rounds.next()
    assert backend.up
    assert bench.changed == [("a1", False), ("a1", True)]
    assert [one.levelname for one in caplog.records] == ["WARNING", "INFO"]


async def test_failures_count_only_in_a_row(bench: Bench) -> None:
    for answer in (sick, healthy, sick, healthy, sick):
        bench.answers["a1"] = answer
        await bench.rounds.next()
        assert bench.table.backends["a1"].up


async def test_a_probe_that_raises_has_failed_and_stops_nothing(
    bench: Bench, caplog: pytest.LogCaptureFixture
) -> None:
    async def breaks() -> bool:
        raise RuntimeError("odd")

    bench.answers["a1"] = breaks
    caplog.set_level(logging.WARNING)
    await bench.rounds.next()
    await bench.rounds.next()
    assert not bench.table.backends["a1"].up
    assert bench.table.backends["b1"].up
    assert "the health probe of backend a1 failed" in caplog.text
    assert "backend a1 is down" in caplog.text


async def test_one_hung_backend_delays_no_other(bench: Bench) -> None:
    bench.answers["a1"] = hangs
    bench.answers["b1"] = sick
    await bench.rounds.next()
    await bench.rounds.next()
    assert not bench.table.backends["b1"].up
    assert bench.probed.count("a1") == 2, "no second probe is sent while one is open"
    assert bench.probed.count("a2") == 3


async def test_a_probe_has_a_time_limit(make_table: MakeTable) -> None:
    bench = Bench(make_table({"llama": {"a": (1, ["a1"])}}), timeout=0.01)
    bench.answers["a1"] = hangs
    task = asyncio.create_task(bench.prober.run())
    for expected in (1, 2):
        await settle()
        await asyncio.sleep(0.05)
        assert bench.table.backends["a1"].probe_failures == expected
        await bench.rounds.next()
    assert not bench.table.backends["a1"].up
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


async def test_a_success_closes_a_circuit_only_after_its_cooldown(
    bench: Bench, clock: Clock
) -> None:
    backend = bench.table.backends["a1"]
    for _ in range(5):
        backend.circuit.failure()
    await bench.rounds.next()
    assert not backend.usable()
    assert bench.changed == []
    clock.now += 5
    await bench.rounds.next()
    assert backend.circuit.state == "closed"
    assert bench.changed == [("a1", True)], "or those who wait would not know"


async def test_a_reload_is_followed(bench: Bench, make_table: MakeTable) -> None:
    bench.probed.clear()
    bench.table = make_table({"llama": {"a": (1, ["a1", "new"])}}, previous=bench.table)
    await bench.rounds.next()
    assert sorted(bench.probed) == ["a1", "new"]
    assert bench.table.backends["new"].checked


# The probe over HTTP


async def ask(
    make_table: MakeTable, answer: Callable[[httpx.Request], httpx.Response], **backend: str
) -> bool:
    table = make_table({"llama": {"a": (1, ["a1"])}}, backends={"a1": backend})
    async with httpx.AsyncClient(transport=httpx.MockTransport(answer)) as client:
        return await HttpProbe(lambda _: client)(table.backends["a1"])


@pytest.mark.parametrize(
    ("status", "expected"), [(200, True), (503, False), (500, False), (404, False), (302, False)]
)
async def test_only_200_is_healthy(make_table: MakeTable, status: int, expected: bool) -> None:
    assert await ask(make_table, lambda _: httpx.Response(status)) is expected


async def test_asks_health_below_the_prefix_with_the_backends_key(make_table: MakeTable) -> None:
    seen: list[httpx.Request] = []

    def answer(request: httpx.Request) -> httpx.Response:
        seen.append(request)
        return httpx.Response(200)

    assert await ask(make_table, answer, url="http://h:1/engine/", api_key="s3cret")
    assert await ask(make_table, answer, url="http://h:1")
    assert [(str(r.url), r.headers.get("authorization")) for r in seen] == [
        ("http://h:1/engine/health", "Bearer s3cret"),
        ("http://h:1/health", None),
    ]


@pytest.mark.parametrize(
    "error",
    [
        httpx.ConnectError("refused"),
        httpx.ReadTimeout("slow"),
        httpx.RemoteProtocolError("not HTTP"),
        httpx.InvalidURL("odd"),
    ],
)
async def test_no_answer_is_not_healthy(make_table: MakeTable, error: Exception) -> None:
    def answer(_: httpx.Request) -> httpx.Response:
        raise error

    assert not await ask(make_table, answer)


async def test_the_reason_is_the_systems(make_table: MakeTable) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))  # and does not listen
        url = f"http://127.0.0.1:{taken.getsockname()[1]}"
        table = make_table({"llama": {"a": (1, ["a1"])}}, backends={"a1": {"url": url}})
        async with aclosing(Clients()) as clients:
            assert not await HttpProbe(clients)(table.backends["a1"])
    assert table.backends["a1"].trouble == "no answer: Connection refused"


async def test_the_network_is_asked_directly_whatever_proxy_the_environment_names(
    make_table: MakeTable, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:1")
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:1")

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n")
        await writer.drain()
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    table = make_table(
        {"llama": {"a": (1, ["a1"])}}, backends={"a1": {"url": f"http://127.0.0.1:{port}"}}
    )
    async with server, aclosing(Clients()) as clients:
        assert await HttpProbe(clients)(table.backends["a1"])
