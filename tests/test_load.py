"""A thousand streams at once through one gateway process: none fails, and nothing is left over."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import resource
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import pytest
from prometheus_client.parser import text_string_to_metric_families

from tests.support import grammar_messages, grammar_responses
from tests.support.apis import CHAT, MESSAGES, RESPONSES, Dialect
from tests.support.gateway_process import KEY, Process, serving, settings
from tests.support.scripted import FACTS, SSE_HEAD, chunk

STREAMS = 1000
TICKS = 8
TICK = 0.25
"""Seconds between two tokens of a stream."""

KIB = 1024
FIRST = SSE_HEAD + b"".join(map(chunk, CHAT.opening + CHAT.tokens[:1]))
TOKEN = chunk(CHAT.tokens[1])
LAST = b"".join(map(chunk, CHAT.ending)) + chunk(b"")


class Backend(asyncio.Protocol):
    """One connection to an engine that does nothing but send, which a thousand need.

    A stream's first token comes at once; all others when `Engine.tick` is called.
    """

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._buffer = b""
        self.transport: asyncio.Transport

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport
        self._engine.connections.add(self)

    def data_received(self, data: bytes) -> None:
        self._buffer += data
        head, found, body = self._buffer.partition(b"\r\n\r\n")
        if not found:
            return
        target = head.split(b" ", 2)[1].decode()
        if target in FACTS:
            self._buffer = b""
            self.transport.write(FACTS[target])
            self.transport.close()
        elif len(body) >= _content_length(head):
            self._buffer = b""
            self._engine.open.add(self)
            self.transport.write(FIRST)

    def connection_lost(self, error: Exception | None) -> None:
        self._engine.open.discard(self)
        self._engine.connections.discard(self)


@dataclass(eq=False)
class Engine:
    """A backend: its connections, and of those `open` whose stream goes on."""

    url: str = ""
    connections: set[Backend] = field(default_factory=set)
    open: set[Backend] = field(default_factory=set)

    async def tick(self, data: bytes) -> None:
        """Send it on every stream, not in one go: engines do not speak all at once, either."""
        for number, one in enumerate(list(self.open)):
            one.transport.write(data)
            if number % 50 == 49:
                await asyncio.sleep(0)

    async def finish(self) -> None:
        await self.tick(LAST)
        self.open.clear()


@asynccontextmanager
async def engine() -> AsyncIterator[Engine]:
    it = Engine()
    loop = asyncio.get_running_loop()
    server = await loop.create_server(lambda: Backend(it), "127.0.0.1", 0, backlog=STREAMS)
    it.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    try:
        yield it
    finally:
        server.close()


class Client(asyncio.Protocol):
    """One client of the gateway: asks, and keeps what comes.

    Args:
        first: what is in the event of the first token.
    """

    def __init__(self, request: bytes, first: bytes) -> None:
        self._request = request
        self._first = first
        self.received = bytearray()
        self.began: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.ended: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.transport: asyncio.Transport

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport
        transport.write(self._request)

    def data_received(self, data: bytes) -> None:
        self.received += data
        if not self.began.done() and self._first in self.received:
            self.began.set_result(None)
        if self.received.endswith(b"0\r\n\r\n"):
            _settle(self.began, self.ended)

    def connection_lost(self, error: Exception | None) -> None:
        _settle(self.began, self.ended)

    @property
    def answer(self) -> tuple[int, bytes]:
        """Status and body, which is chunked and complete."""
        head, _, rest = bytes(self.received).partition(b"\r\n\r\n")
        body = b""
        while rest:
            size, _, rest = rest.partition(b"\r\n")
            length = int(size, 16)
            body, rest = body + rest[:length], rest[length + 2 :]
            if length == 0:
                return int(head.split(b" ")[1]), body
        raise AssertionError(f"cut off: {bytes(self.received[-200:])!r}")


def _settle(*futures: asyncio.Future[None]) -> None:
    for future in futures:
        if not future.done():
            future.set_result(None)


def _content_length(head: bytes) -> int:
    lines = head.lower().split(b"\r\n")
    return next(int(line.split(b":")[1]) for line in lines if line.startswith(b"content-length"))


@pytest.fixture
def many_files() -> Iterator[None]:
    """Two thousand sockets here and as many in the gateway, which inherits the limit."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = max(soft, 8192) if hard == resource.RLIM_INFINITY else min(max(soft, 8192), hard)
    assert wanted > 3 * STREAMS, f"this machine allows no more than {wanted} open files"
    resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
    yield
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


async def test_a_thousand_streams_at_once(many_files: None, tmp_path: Path) -> None:
    async with engine() as backend:
        content = settings(tmp_path, backend.url, backend.url)
        for one in content["backends"].values():
            one["max_concurrency"] = STREAMS
        async with serving(tmp_path, content) as it:
            await load(it, backend, 20, ticks=1)  # what is made once is made
            sockets, memory = await clients_sockets(it, backend), resident(it)
            clients, peak = await load(it, backend, STREAMS, TICKS)
            tokens = [CHAT.tokens[0], *[CHAT.tokens[1]] * TICKS]
            whole = 200, b"".join([*CHAT.opening, *tokens, *CHAT.ending])
            wrong = [client.answer for client in clients if client.answer != whole]
            assert not wrong, f"{len(wrong)} streams, such as {wrong[0]}"
            growth = (peak - memory) / STREAMS
            assert growth < 60 * KIB, f"{growth / KIB:.1f} KiB a stream"
            # The allocator has what it needs only after one whole round.
            later = [(await load(it, backend, STREAMS, ticks=1))[1] for _ in range(2)]
            kept = (later[1] - later[0]) / STREAMS
            assert kept < 4 * KIB, f"{kept / KIB:.1f} KiB stay of a stream; a record has 1.3"
            await it.eventually(5, partial(nothing_left, it, backend, sockets))
            page = (await it.client.get("/metrics")).text
            assert values(page, "gateway_requests_in_flight") == [0, 0]
            assert sum(values(page, "gateway_requests_total", outcome="ok")) == 3 * STREAMS + 20
            assert sum(values(page, "gateway_requests_total")) == 3 * STREAMS + 20
            assert sum(values(page, "gateway_no_first_token_total")) == 0
            assert "Traceback" not in it.said


FIRSTS = {CHAT.api: CHAT.tokens[0], MESSAGES.api: b'"text":"a"', RESPONSES.api: b'"delta":"a"'}
"""How the first token is said."""


async def test_streams_of_other_apis_at_once(many_files: None, tmp_path: Path) -> None:
    """Five hundred, each a chat stream that is translated on its way."""
    number = STREAMS // 2
    async with engine() as backend:
        content = settings(tmp_path, backend.url, backend.url)
        for one in content["backends"].values():
            one |= {"max_concurrency": number, "apis": ["chat"]}
        async with serving(tmp_path, content) as it:
            spoken = (MESSAGES, RESPONSES)
            await load(it, backend, 20, ticks=1, dialects=spoken)
            sockets = await clients_sockets(it, backend)
            clients, _ = await load(it, backend, number, ticks=2, dialects=spoken)
            answers = [client.answer for client in clients]
            assert {status for status, _ in answers} == {200}
            messages = {body.count(b"event: ") for _, body in answers[::2]}
            responses = {body.count(b"event: ") for _, body in answers[1::2]}
            assert len(grammar_messages.check(answers[0][1])) in messages and len(messages) == 1
            final = grammar_responses.check(answers[1][1])
            assert final["output"][0]["content"][0]["text"] == "abb" and len(responses) == 1
            await it.eventually(5, partial(nothing_left, it, backend, sockets))
            page = (await it.client.get("/metrics")).text
            all_of_them, name = number + 20, "gateway_requests_total"
            assert sum(values(page, name, outcome="ok", api="messages")) == all_of_them / 2
            assert sum(values(page, name)) == all_of_them
            assert sum(values(page, "gateway_completion_tokens_total")) == 2 * all_of_them
            timed = values(page, "gateway_time_to_first_token_seconds_count")
            assert sum(timed) == all_of_them
            assert sum(values(page, "gateway_no_first_token_total")) == 0
            assert "Traceback" not in it.said


async def load(
    it: Process, backend: Engine, number: int, ticks: int, dialects: Sequence[Dialect] = (CHAT,)
) -> tuple[list[Client], int]:
    """Run so many streams beside each other; the clients, and the most memory in bytes.

    No token but the first is sent before all streams have had theirs, so all are open at once.
    """
    port = int(it.url.rpartition(":")[2])
    loop = asyncio.get_running_loop()
    clients: list[Client] = []
    for n in range(number):
        dialect = dialects[n % len(dialects)]
        make = partial(Client, asking(n, dialect), FIRSTS[dialect.api])
        _, client = await loop.create_connection(make, "127.0.0.1", port)
        clients.append(client)
    async with asyncio.timeout(15):
        await asyncio.gather(*(client.began for client in clients))
    assert len(backend.open) == number
    peak = resident(it)
    for _ in range(ticks):
        await asyncio.gather(backend.tick(TOKEN), asyncio.sleep(TICK))
        peak = max(peak, resident(it))
    await backend.finish()
    async with asyncio.timeout(15):
        await asyncio.gather(*(client.ended for client in clients))
    for client in clients:
        client.transport.close()
    return clients, peak


def asking(session: int, dialect: Dialect) -> bytes:
    body = json.dumps(dialect.streamed).encode()
    return (
        b"POST %b HTTP/1.1\r\nhost: x\r\nauthorization: Bearer %b\r\n"
        b"content-type: application/json\r\nx-session-id: s%d\r\ncontent-length: %d\r\n\r\n%b"
    ) % (dialect.path.encode(), KEY.encode(), session, len(body), body)


def values(page: str, name: str, **labels: str) -> list[float]:
    """The samples of this name that have these labels."""
    return [
        sample.value
        for family in text_string_to_metric_families(page)
        for sample in family.samples
        if sample.name == name and labels.items() <= sample.labels.items()
    ]


def resident(it: Process) -> int:
    """Bytes of memory the gateway occupies."""
    status = Path(f"/proc/{it.child.pid}/status").read_text()
    line = next(line for line in status.splitlines() if line.startswith("VmRSS:"))
    return int(line.split()[1]) * KIB


async def clients_sockets(it: Process, backend: Engine) -> int:
    """The gateway's sockets but for those to backends, with one connection for this question."""
    await it.client.get("/health")
    found = 0
    for one in Path(f"/proc/{it.child.pid}/fd").iterdir():
        with contextlib.suppress(FileNotFoundError):  # closed meanwhile
            found += os.readlink(one).startswith("socket:")
    return found - len(backend.connections)


async def nothing_left(it: Process, backend: Engine, sockets: int) -> bool:
    """Of all sockets there are as many as before, but for idle ones kept to each backend."""
    return await clients_sockets(it, backend) <= sockets and len(backend.connections) <= 2 * 256
