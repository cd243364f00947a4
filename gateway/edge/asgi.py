"""The way in for any ASGI server: hot routes by hand, everything else to the application.

Under the gateway's own server hot requests never get here; under another one, and in tests, this
is how the same handler is reached.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from gateway.edge.handler import BODY_TOO_SLOW, TOO_LARGE, Handler
from gateway.edge.intake import Understand, understand
from gateway.edge.paths import Endpoint, HotPaths, canonical
from gateway.edge.stored import STORED, stored
from gateway.errors import RequestTimeout, TooLarge, UpgradeRequired
from gateway.exchange.context import Context
from gateway.exchange.reply import Headers
from gateway.protocols import faults
from gateway.records import Api

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

HIGH_WATER = 65536
# These have one spelling each, so that a proxy in front can keep the world out by it.
OPERATIONS = ("/metrics", "/health", "/ready", "/admin")
NO_WEBSOCKETS = "WebSockets are not served here; use HTTP requests (POST, with SSE streams)."


class AsgiReply:
    """The `Reply` of a request that came by ASGI: writes are queued, `pump` sends them."""

    def __init__(self, send: Send) -> None:
        self._send = send
        self._queue: asyncio.Queue[Message | None] = asyncio.Queue()
        self._buffered = 0
        self._pump: asyncio.Task[None] | None = None
        self.handler: Handler | None = None

    def start(self, status: int, headers: Headers, length: int | None) -> None:
        if length is not None:
            headers = [*headers, (b"content-length", b"%d" % length)]
        self._queue.put_nowait(
            {"type": "http.response.start", "status": status, "headers": headers}
        )

    def write(self, data: bytes) -> None:
        self._buffered += len(data)
        if self._buffered > HIGH_WATER and self.handler is not None:
            self.handler.pause()
        self._queue.put_nowait({"type": "http.response.body", "body": data, "more_body": True})

    def finish(self, data: bytes) -> None:
        self._buffered += len(data)
        self._queue.put_nowait({"type": "http.response.body", "body": data, "more_body": False})
        self._queue.put_nowait(None)

    def abort(self) -> None:
        self._queue.put_nowait(None)
        if self._pump is not None:
            self._pump.cancel()  # the server may be waiting for a client that does not read

    def open(self) -> asyncio.Task[None]:
        """Begin to send what is written, until the answer is finished or broken off."""
        self._pump = asyncio.ensure_future(self._send_all())
        return self._pump

    async def _send_all(self) -> None:
        while (message := await self._queue.get()) is not None:
            await self._send(message)
            size = len(message.get("body", b""))
            if self._buffered > HIGH_WATER >= self._buffered - size and self.handler is not None:
                self.handler.resume()
            self._buffered -= size


class FrontDoor:
    """ASGI middleware: serves hot routes and gives the rest one spelling of its path.

    Args:
        app: serves every other route, under canonical paths.
    """

    def __init__(self, app: ASGIApp, context: Context, paths: HotPaths) -> None:
        self._app = app
        self._context = context
        self._paths = paths

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        method, path = scope["method"], canonical(scope["path"])
        endpoint = self._paths.find(scope["path"].encode()) if method == "POST" else None
        if endpoint is not None:
            await self._serve(endpoint, understand, scope, receive, send)
        elif (understand_stored := stored(method, path, scope["query_string"])) is not None:
            await self._serve(STORED, understand_stored, scope, receive, send)
        elif _wants_websocket(scope):
            await self._refuse_upgrade(send)
        elif path.startswith(OPERATIONS):
            await self._app(scope, receive, send)
        else:
            await self._app({**scope, "path": path}, receive, send)

    async def _serve(
        self,
        endpoint: Endpoint,
        understand: Understand,
        scope: Scope,
        receive: Receive,
        send: Send,
    ) -> None:
        reply = AsgiReply(send)
        headers = [(name.lower(), value) for name, value in scope["headers"]]
        handler = Handler(self._context, endpoint, scope["raw_path"], headers, reply, understand)
        reply.handler = handler
        if handler.open():
            body = await self._read_in_time(handler, receive)
            if body is not None:
                handler.start(body)
        pump = reply.open()
        watcher = asyncio.ensure_future(_watch(handler, receive))
        try:
            await asyncio.wait((pump,))
            if not pump.cancelled():
                pump.result()
        finally:
            pump.cancel()
            watcher.cancel()
            if not handler.done:
                handler.client_gone()  # the server would not take the answer

    async def _read_in_time(self, handler: Handler, receive: Receive) -> bytes | None:
        seconds = self._context.settings.server.body_timeout
        try:
            async with asyncio.timeout(seconds):
                return await self._read(handler, receive)
        except TimeoutError:
            handler.refuse(RequestTimeout(BODY_TOO_SLOW.format(seconds=seconds)))
            return None

    async def _read(self, handler: Handler, receive: Receive) -> bytes | None:
        """The whole body, or None where the request was refused or the client left."""
        limit = self._context.settings.server.max_body_mib
        parts: list[bytes] = []
        size = 0
        while True:
            message = await receive()
            if message["type"] == "http.disconnect":
                handler.client_gone()
                return None
            parts.append(message.get("body", b""))
            size += len(parts[-1])
            if size > limit * 2**20:
                handler.refuse(TooLarge(TOO_LARGE.format(limit=limit)))
                return None
            if not message.get("more_body", False):
                return b"".join(parts)

    async def _refuse_upgrade(self, send: Send) -> None:
        body = faults.body(Api.OTHER, UpgradeRequired(NO_WEBSOCKETS), self._context.new_id())
        headers = [
            (b"content-type", b"application/json"),
            (b"content-length", b"%d" % len(body)),
            (b"connection", b"close"),
        ]
        start: dict[str, Any] = {"type": "http.response.start", "status": 426, "headers": headers}
        await send(start)
        await send({"type": "http.response.body", "body": body})


async def _watch(handler: Handler, receive: Receive) -> None:
    """Tell the handler when the client leaves.

    Servers say `http.disconnect` on an ordinary end too, so it counts only while unanswered.
    """
    while (await receive())["type"] != "http.disconnect":
        pass
    if not handler.done:
        handler.client_gone()


def _wants_websocket(scope: Scope) -> bool:
    headers = dict(scope["headers"])
    return bool(headers.get(b"upgrade", b"").lower() == b"websocket")
