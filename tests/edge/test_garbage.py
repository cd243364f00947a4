"""A request is freed when it is over: the collector's pauses would be in other requests' TTFT."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.support.apis import CHAT, MESSAGES, RESPONSES, Dialect
from tests.support.running import configuration, running
from tests.support.scripted import scripted
from tests.support.site import Script, answers, chat_only, hangs_up, refuses, streams
from tests.support.wire import post, wire

OURS = (
    *("gateway.edge", "gateway.exchange", "gateway.upstream", "gateway.protocols"),
    *("gateway.clients", "gateway.routing"),
)
TOOL = {"name": "f", "description": "d", "input_schema": {"type": "object"}}
NAMESPACE = {
    "type": "namespace",
    "name": "files",
    "tools": [{"type": "function", "name": "read", "parameters": {"type": "object"}}],
}
TOOLS: dict[str, dict[str, Any]] = {
    CHAT.api: {},
    MESSAGES.api: {"tools": [TOOL]},
    RESPONSES.api: {"tools": [NAMESPACE]},
}
COUNTING = MESSAGES.path + "/count_tokens"

KINDS = {
    "chat": (CHAT, CHAT.path, answers(CHAT)),
    "messages": (MESSAGES, MESSAGES.path, answers(MESSAGES)),
    "responses": (RESPONSES, RESPONSES.path, answers(RESPONSES)),
    "messages as chat": (MESSAGES, MESSAGES.path, chat_only(answers(CHAT))),
    "responses as chat": (RESPONSES, RESPONSES.path, chat_only(answers(CHAT))),
    "an estimate": (MESSAGES, COUNTING, chat_only(answers(CHAT))),
    "a refusal": (CHAT, CHAT.path, refuses("400 Bad Request")),
    "a failure": (CHAT, CHAT.path, refuses("503 Service Unavailable")),
    "a lost connection": (CHAT, CHAT.path, hangs_up),
    "a cut stream": (MESSAGES, MESSAGES.path, chat_only(streams(*CHAT.opening, then=hangs_up))),
    "a refusal as chat": (RESPONSES, RESPONSES.path, chat_only(refuses("400 Bad Request"))),
}


@pytest.fixture(autouse=True)
def nothing_older() -> Iterator[None]:
    """What all the other tests have imported takes the collector half a second to look at."""
    gc.freeze()
    yield
    gc.unfreeze()


@contextmanager
def no_cycles() -> Iterator[None]:
    """Expect that all within is freed without the collector."""
    gc.collect()
    gc.disable()
    gc.set_debug(gc.DEBUG_SAVEALL)
    try:
        yield
        gc.collect()
        left = [type(one) for one in gc.garbage if type(one).__module__.startswith(OURS)]
    finally:
        gc.set_debug(0)
        gc.garbage.clear()
        gc.enable()
    assert left == []


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize(("dialect", "path", "script"), KINDS.values(), ids=KINDS)
async def test_a_request_leaves_no_cycles(
    tmp_path: Path, dialect: Dialect, path: str, script: Script, stream: bool
) -> None:
    async with (
        scripted(script) as backend,
        running(configuration(tmp_path, backend.url), tmp_path) as it,
    ):
        body = {**dialect.request, **TOOLS[dialect.api], "stream": stream}
        for _ in range(3):
            await it.client.post(path, json=body)
        with no_cycles():
            for _ in range(20):
                await it.client.post(path, json=body)


@pytest.mark.parametrize("dialect", [CHAT, MESSAGES, RESPONSES], ids=lambda one: one.api)
@pytest.mark.parametrize("leaves", [True, False], ids=["a client that leaves", "a time limit"])
async def test_nor_does_one_that_is_cut_short(
    tmp_path: Path, dialect: Dialect, leaves: bool
) -> None:
    script = chat_only(streams(*CHAT.opening, *CHAT.tokens * 50, pause=0.02))
    async with scripted(script) as backend:
        content = configuration(tmp_path, backend.url)
        if not leaves:
            content["timeouts"] = {"total": 0.1}
        async with running(content, tmp_path) as it:
            await it.client.post("/v1/messages", json={})
            with no_cycles():
                for _ in range(4):
                    async with wire(it.port) as client:
                        client.send(post(dialect.streamed, dialect.path))
                        if leaves:
                            await client.head()
                        else:
                            await client.answer()
                await it.record(5)
                await it.settle()
