from __future__ import annotations

from typing import Any

import httpx
import pytest
from starlette.responses import PlainTextResponse
from starlette.types import Message, Receive, Scope, Send

from gateway.console.guard import Guard
from gateway.console.sessions import Role, Sessions

HTML = {"accept": "text/html"}
HOST = b"console:8090"


async def behind(scope: Scope, receive: Receive, send: Send) -> None:
    """Whatever the guard lets through."""
    if scope["type"] == "websocket":
        await send({"type": "websocket.accept"})
    else:
        await PlainTextResponse("in")(scope, receive, send)


@pytest.fixture
def sessions() -> Sessions:
    return Sessions(lambda: 0.0)


@pytest.fixture
def cookie(sessions: Sessions) -> str:
    return f"gateway_console_8090={sessions.start('sk-1', Role.ADMIN, 'Ada')}"


async def ask(sessions: Sessions, path: str, method: str = "GET", **headers: str) -> httpx.Response:
    transport = httpx.ASGITransport(Guard(behind, sessions))
    async with httpx.AsyncClient(transport=transport, base_url="http://console:8090") as client:
        return await client.request(method, path, headers=headers)


async def socket(sessions: Sessions, **headers: str) -> str:
    """What becomes of a WebSocket."""
    sent: list[Message] = []

    async def receive() -> Message:
        return {"type": "websocket.connect"}

    async def send(message: Message) -> None:
        sent.append(message)

    scope: dict[str, Any] = {
        "type": "websocket",
        "path": "/_nicegui_ws/socket.io/",
        "server": ("127.0.0.1", 8090),
        "headers": [(b"host", HOST), *((k.encode(), v.encode()) for k, v in headers.items())],
    }
    await Guard(behind, sessions)(scope, receive, send)
    return str(sent[0]["type"])


async def test_who_is_not_signed_in_is_sent_to_do_so(sessions: Sessions) -> None:
    reply = await ask(sessions, "/keys", **HTML)
    assert (reply.status_code, reply.headers["location"]) == (303, "/login")
    for path in ("/_nicegui/x.js", "/_nicegui_ws/socket.io/"):
        assert (await ask(sessions, path)).status_code == 401


@pytest.mark.parametrize("path", ["/login", "/console.css"])
async def test_what_signing_in_takes_is_open(sessions: Sessions, path: str) -> None:
    assert (await ask(sessions, path)).text == "in"


async def test_who_is_signed_in_is_let_in(sessions: Sessions, cookie: str) -> None:
    assert (await ask(sessions, "/keys", cookie=cookie)).text == "in"
    assert (await ask(sessions, "/keys", cookie=cookie[:-1])).status_code == 401
    assert (await ask(sessions, "/keys", cookie=cookie.replace("8090", "8091"))).status_code == 401


@pytest.mark.parametrize(
    "origin", ["http://evil.example", "http://console:8091", "null", "", "http://console"]
)
async def test_other_sites_change_nothing(sessions: Sessions, cookie: str, origin: str) -> None:
    headers = {"cookie": cookie} | ({"origin": origin} if origin else {})
    assert (await ask(sessions, "/logout", "POST", **headers)).status_code == 403
    assert (await ask(sessions, "/login", "POST", **headers)).status_code == 403
    assert await socket(sessions, **headers) == "websocket.close"


async def test_a_socket_needs_a_session(sessions: Sessions, cookie: str) -> None:
    origin = "http://console:8090"
    assert await socket(sessions, origin=origin) == "websocket.close"
    assert await socket(sessions, origin=origin, cookie=cookie) == "websocket.accept"
    reply = await ask(sessions, "/logout", "POST", origin=origin, cookie=cookie)
    assert reply.text == "in"


async def test_pages_are_not_kept_framed_or_fed_from_elsewhere(
    sessions: Sessions, cookie: str
) -> None:
    page = (await ask(sessions, "/", cookie=cookie)).headers
    assert page["cache-control"] == "no-store"
    policy = page["content-security-policy"]
    assert "default-src 'self'" in policy and "frame-ancestors 'none'" in policy
    assert "http" not in policy
    assert page["x-content-type-options"] == "nosniff"
    asset = (await ask(sessions, "/_nicegui/3/static/x.js", cookie=cookie)).headers
    assert "cache-control" not in asset
