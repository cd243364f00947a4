"""Stands before every page: who is not signed in sees the sign-in page only, and other sites get
nothing done in the name of who is."""

from __future__ import annotations

from urllib.parse import urlsplit

from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import cookie_parser
from starlette.responses import PlainTextResponse, RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from gateway.console.sessions import Session, Sessions

SIGN_IN = "/login"
OPEN = frozenset({SIGN_IN, "/console.css", "/favicon.ico"})
"""Paths that need no session."""

_SAFE = ("GET", "HEAD")

# The library compiles its templates in the browser, which needs 'unsafe-eval'. Nothing may be
# fetched from elsewhere or sent there, whatever a page's content says.
POLICY = (
    "default-src 'self'; script-src 'self' 'unsafe-inline' 'unsafe-eval'; "
    "style-src 'self' 'unsafe-inline'; img-src 'self' data:; font-src 'self'; "
    "connect-src 'self'; object-src 'none'; base-uri 'self'; form-action 'self'; "
    "frame-ancestors 'none'"
)
HEADERS = {
    "content-security-policy": POLICY,
    "x-content-type-options": "nosniff",
    # With "no-referrer" browsers leave out the origin of forms as well.
    "referrer-policy": "same-origin",
}


def cookie_name(scope: Scope) -> str:
    """Cookies do not tell ports apart, so the name does: two consoles on a machine get along."""
    server = scope.get("server")
    return f"gateway_console_{server[1] if server else ''}"


def token(scope: Scope) -> str:
    """What the browser holds of a session, or nothing."""
    cookies = cookie_parser(Headers(scope=scope).get("cookie", ""))
    return cookies.get(cookie_name(scope), "")


class Guard:
    """ASGI middleware; a request that passes has its session in `scope["state"]["session"]`."""

    def __init__(self, app: ASGIApp, sessions: Sessions) -> None:
        self._app = app
        self._sessions = sessions

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] not in ("http", "websocket"):
            await self._app(scope, receive, send)
            return
        session = self._sessions.find(token(scope))
        refusal = _refusal(scope, session)
        if scope["type"] == "websocket":
            if refusal is None:
                await self._app(scope, receive, send)
            else:
                await receive()
                await send({"type": "websocket.close", "code": 1008})
            return
        scope.setdefault("state", {})["session"] = session
        await _answer(refusal or self._app, scope, receive, _with_headers(scope, send))


async def _answer(app: ASGIApp, scope: Scope, receive: Receive, send: Send) -> None:
    gone = False

    async def receiving() -> Message:
        nonlocal gone
        message = await receive()
        gone = gone or message["type"] == "http.disconnect"
        return message

    try:
        await app(scope, receiving, send)
    except RuntimeError:
        # Starlette's middleware complains that there is no response where a browser left first.
        if not gone:
            raise


def _refusal(scope: Scope, session: Session | None) -> Response | None:
    method = scope.get("method", "")
    if method not in _SAFE and not _same_origin(Headers(scope=scope)):
        return PlainTextResponse("This came from another site.", 403)
    if session is not None or (scope["type"] == "http" and scope["path"] in OPEN):
        return None
    if method in _SAFE and "text/html" in Headers(scope=scope).get("accept", ""):
        return RedirectResponse(SIGN_IN, 303)
    return PlainTextResponse("Sign in first.", 401)


def _same_origin(headers: Headers) -> bool:
    """Whether a page of this console asks. Browsers say so with all that changes something and
    with every WebSocket."""
    origin = urlsplit(headers.get("origin", ""))
    return bool(origin.netloc) and origin.netloc == headers.get("host", "")


def _with_headers(scope: Scope, send: Send) -> Send:
    async def sending(message: Message) -> None:
        if message["type"] == "http.response.start":
            headers = MutableHeaders(scope=message)
            headers.update(HEADERS)
            if not scope["path"].startswith("/_nicegui/"):
                headers["cache-control"] = "no-store"
        await send(message)

    return sending
