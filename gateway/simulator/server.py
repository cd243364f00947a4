"""A simulated vLLM server: its HTTP surface over the simulated engine."""

from __future__ import annotations

import asyncio
import contextlib
import hmac
from collections.abc import AsyncIterator

from fastapi import FastAPI
from starlette.datastructures import Headers, MutableHeaders
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from gateway.simulator import chat, completions, messages, operations, pooling, responses
from gateway.simulator.config import EngineConfig
from gateway.simulator.engine import Engine
from gateway.simulator.faults import Fault, unauthorized
from gateway.simulator.service import Service

GUARDED = ("/v1", "/v2")
SERVER = f"simulated-vllm/{operations.VERSION}"


def create_app(config: EngineConfig) -> FastAPI:
    """The server; its lifespan runs the engine, which is `app.state.engine`."""
    engine = Engine(config)
    service = Service(engine)

    @contextlib.asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        task = asyncio.create_task(engine.run())
        yield
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task

    app = FastAPI(title="Simulated vLLM", version=operations.VERSION, lifespan=lifespan)
    app.state.engine = engine
    for room in (chat, completions, messages, responses, pooling, operations):
        app.include_router(room.routes(service))
    app.add_exception_handler(Fault, _answer_fault)
    app.add_exception_handler(HTTPException, _answer_http_exception)
    app.add_middleware(_Door, config.api_key)
    return app


class _Door:
    """Says that the server is simulated, and lets in only who has the key.

    vLLM guards `/v1` and `/v2` only, and takes the key only as a Bearer token.
    """

    def __init__(self, app: ASGIApp, api_key: str | None) -> None:
        self._app = app
        self._expected = f"Bearer {api_key}".encode() if api_key else None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return

        async def labelled(message: Message) -> None:
            if message["type"] == "http.response.start":
                MutableHeaders(scope=message)["server"] = SERVER
            await send(message)

        app = self._app if self._admits(scope) else unauthorized()
        await app(scope, receive, labelled)

    def _admits(self, scope: Scope) -> bool:
        if self._expected is None or not scope["path"].startswith(GUARDED):
            return True
        given = Headers(scope=scope).get("authorization", "").encode()
        return hmac.compare_digest(given, self._expected)


async def _answer_fault(_: Request, error: Exception) -> Response:
    assert isinstance(error, Fault)
    return error.response()


async def _answer_http_exception(_: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    return Fault(error.status_code, str(error.detail)).response()
