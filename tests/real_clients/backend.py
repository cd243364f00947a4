"""A scripted engine over a real socket: plays one step a request and keeps what it was asked.

`native` speaks chat, Messages and Responses; `chat-only` knows chat completions alone, as engines
of the 0.6 era and many other servers do, and answers 404 elsewhere.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, Literal, NoReturn

from gateway.records import Api
from tests.real_clients.speech import PROMPT_TOKENS, Answer, events, named, unnamed, whole
from tests.real_clients.speech.responses import failed
from tests.real_clients.steps import Breaks, Fails, Ignores, Reports, Step, Stops, Waits
from tests.support.scripted import SSE_HEAD, Received, ScriptedBackend, chunk, reply, scripted

Kind = Literal["native", "chat-only"]

PATHS = {
    "/v1/chat/completions": Api.CHAT,
    "/v1/messages": Api.MESSAGES,
    "/v1/responses": Api.RESPONSES,
}
COUNT = "/v1/messages/count_tokens"


@dataclass(frozen=True)
class Asked:
    """One request for an answer, as it reached the engine."""

    api: Api
    headers: dict[str, str]
    body: dict[str, Any]
    raw: bytes


@dataclass
class Engine:
    """A running scripted engine.

    Attributes:
        steps: what it does with one request after another; the last one repeats.
        asked: what it was asked to answer.
        others: method and path of the requests for anything else.
    """

    kind: Kind
    steps: Sequence[Step]
    server: ScriptedBackend
    asked: list[Asked] = field(default_factory=list)
    others: list[str] = field(default_factory=list)

    @property
    def url(self) -> str:
        return self.server.url

    async def play(self, request: Received, writer: asyncio.StreamWriter) -> None:
        path = request.target.partition("?")[0]
        api = PATHS.get(path)
        if self.kind == "native" and path == COUNT:
            self.others.append(f"{request.method} {path}")
            writer.write(reply(json.dumps({"input_tokens": PROMPT_TOKENS}).encode()))
        elif api is None or (self.kind == "chat-only" and api is not Api.CHAT):
            self.others.append(f"{request.method} {path}")
            writer.write(reply(b'{"detail":"Not Found"}', status="404 Not Found"))
        else:
            body = json.loads(request.body)
            step = self.steps[min(len(self.asked), len(self.steps) - 1)]
            self.asked.append(Asked(api, request.headers, body, request.body))
            await _act(step, api, bool(body.get("stream")), writer)


@asynccontextmanager
async def engine(kind: Kind, *steps: Step) -> AsyncIterator[Engine]:
    """A scripted engine on a free port of the loopback address."""

    async def play(request: Received, writer: asyncio.StreamWriter) -> None:
        await it.play(request, writer)

    async with scripted(play) as server:
        it = Engine(kind, steps, server)
        yield it


async def _act(step: Step, api: Api, stream: bool, writer: asyncio.StreamWriter) -> None:
    if isinstance(step, Fails):
        kind = f"content-type: application/json\r\n{step.headers}"
        writer.write(reply(_error(step, api), status=step.status, headers=kind))
    elif stream and not isinstance(step, Ignores):
        await _stream(step, api, writer)
    else:
        await _answer(step, api, writer)


async def _answer(
    step: Answer | Breaks | Reports | Stops | Ignores | Waits,
    api: Api,
    writer: asyncio.StreamWriter,
) -> None:
    if isinstance(step, Reports):
        writer.write(reply(_error(step.error, api), status=step.error.status))
        return
    if isinstance(step, Waits):
        await asyncio.sleep(step.seconds)
    body = reply(whole(api, step if isinstance(step, Answer) else step.answer))
    if isinstance(step, Breaks):
        await _break_off([body[: len(body) // 2]], writer)
    writer.write(body)


async def _stream(
    step: Answer | Breaks | Reports | Stops | Waits, api: Api, writer: asyncio.StreamWriter
) -> None:
    writer.write(SSE_HEAD)
    await writer.drain()
    if isinstance(step, Waits):
        await _wait(step, writer)
    said = events(api, step if isinstance(step, Answer) else step.answer)
    if isinstance(step, Breaks | Reports):
        said = said[: _tokens_of(api) + 2]
    if isinstance(step, Breaks):
        await _break_off([chunk(one) for one in said], writer)
    if isinstance(step, Stops):
        said.pop()
    for one in said:
        writer.write(chunk(one))
        await writer.drain()
    if isinstance(step, Reports):
        # By itself, so that what was said before is on its way to the agent.
        await asyncio.sleep(0.1)
        writer.write(chunk(_reported(step, api, len(said))))
    writer.write(chunk(b""))


async def _wait(step: Waits, writer: asyncio.StreamWriter) -> None:
    for _ in range(step.seconds):
        await asyncio.sleep(1)
        if step.comments:
            writer.write(chunk(b": still at it\n\n"))
            await writer.drain()


def _tokens_of(api: Api) -> int:
    """Events before the first token of a text."""
    return 4 if api is Api.RESPONSES else 2


async def _break_off(said: Sequence[bytes], writer: asyncio.StreamWriter) -> NoReturn:
    """Send this, give it time to arrive, and reset the connection."""
    for one in said:
        writer.write(one)
        await writer.drain()
    await asyncio.sleep(0.1)
    writer.transport.abort()
    raise ConnectionResetError


def _error(step: Fails, api: Api) -> bytes:
    return json.dumps(_worded(step, api)).encode()


def _worded(step: Fails, api: Api) -> dict[str, Any]:
    if api is Api.MESSAGES:
        error: dict[str, Any] = {"type": step.type, "message": step.message}
        return {"type": "error", "error": error}
    code = step.code or int(step.status[:3])
    return {"error": {"message": step.message, "type": step.type, "param": None, "code": code}}


def _reported(step: Reports, api: Api, sequence: int) -> bytes:
    """The error in the middle of a stream, as the event of that number."""
    if step.own and api is Api.MESSAGES:
        return named(_worded(step.error, api))
    if step.own and api is Api.RESPONSES:
        error = {"code": step.error.code or "server_error", "message": step.error.message}
        event = failed(error) if step.failed else {"type": "error", **error, "param": None}
        return named({**event, "sequence_number": sequence})
    return unnamed(_worded(step.error, Api.CHAT))
