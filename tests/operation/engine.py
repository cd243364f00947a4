"""A backend for tests of operation: it does what the text of the request tells it to do."""

from __future__ import annotations

import asyncio
import json
from typing import Any

from tests.support.apis import CHAT, DIALECTS, Dialect
from tests.support.scripted import SSE_HEAD, Received, chunk, reply

POOLED = b'{"object":"list","model":"m","data":[],"usage":{"prompt_tokens":5,"total_tokens":5}}'
TOKENS = b'{"count":3,"max_model_len":8192,"tokens":[1,2,3]}'
FAULT = b'{"error":{"message":"%b","type":"x","param":null,"code":1}}'

BY_PATH: dict[str, Dialect] = {dialect.path: dialect for dialect in DIALECTS}


class Engine:
    """Plays the text of each request, a JSON object such as `{"first": 0.1, "tokens": 3}`.

    Its members: `first` and `gap`, seconds before the first and between two tokens; `tokens`, how
    many; `prompt`, how many the usage says the prompt had; `status`, to refuse with; `fail`, names
    of engines that answer 500.
    """

    def __init__(self, name: str) -> None:
        self.name = name
        self.broken = False
        self.asked: list[str] = []

    async def __call__(self, request: Received, writer: asyncio.StreamWriter) -> None:
        body = json.loads(request.body)
        play = _play(body)
        self.asked.append(request.headers.get("x-session-id", ""))
        if self.broken or self.name in play.get("fail", ()):
            writer.write(reply(FAULT % b"no memory", status="500 Internal Server Error"))
        elif "status" in play:
            writer.write(reply(FAULT % b"too long", status=f"{play['status']} Refused"))
        elif body.get("stream"):
            await _stream(BY_PATH[request.target], play, writer)
        else:
            await asyncio.sleep(play.get("first", 0))
            writer.write(reply(_whole(request.target)))


def _play(body: dict[str, Any]) -> dict[str, Any]:
    text = body.get("prompt") or body.get("input") or body["messages"][-1]["content"]
    play: dict[str, Any] = json.loads(text) if text.startswith("{") else {}
    return play


def _whole(target: str) -> bytes:
    if target in BY_PATH:
        return json.dumps(BY_PATH[target].reply).encode()
    return TOKENS if target == "/tokenize" else POOLED


async def _stream(dialect: Dialect, play: dict[str, Any], writer: asyncio.StreamWriter) -> None:
    writer.write(SSE_HEAD + b"".join(map(chunk, dialect.opening)))
    await writer.drain()
    await asyncio.sleep(play.get("first", 0))
    tokens = play.get("tokens", 2)
    for number in range(tokens):
        writer.write(chunk(dialect.tokens[0]))
        await writer.drain()
        if number + 1 < tokens:
            await asyncio.sleep(play.get("gap", 0.01))
    ending = b"".join(dialect.ending)
    told = b'"prompt_tokens":%d,' % play.get("prompt", 7)
    writer.write(chunk(ending.replace(b'"prompt_tokens":7,', told)) + chunk(b""))


def asking(dialect: Dialect = CHAT, *, stream: bool = True, **play: Any) -> dict[str, Any]:
    """The body of a request for that play."""
    text = json.dumps(play)
    body = dialect.streamed if stream else dialect.request
    for name in ("prompt", "input"):
        if name in body:
            return {**body, name: text}
    return {**body, "messages": [{"role": "user", "content": text}]}
