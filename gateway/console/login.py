"""Signing in and out: plain forms, so that a key travels in a request's body and nowhere else."""

from __future__ import annotations

import asyncio
import logging
import math
from html import escape
from urllib.parse import parse_qs

from fastapi import FastAPI, Request
from fastapi.responses import HTMLResponse, RedirectResponse, Response

from gateway.console.guard import SIGN_IN, cookie_name, token
from gateway.console.remote import Remote
from gateway.console.sessions import LIFETIME, Sessions, Throttle
from gateway.errors import GatewayError

LONGEST_FORM = 4096
LONGEST_NAME = 60
PAUSE = 0.5
"""Seconds a refusal takes at least, so that keys cannot be tried quickly."""

UNKNOWN = (
    "The gateway does not know this key. It is admin.key or admin.read_key of its configuration."
)
TOO_MANY = "Too many wrong keys. Try again in {seconds} s."

log = logging.getLogger("gateway.console")

PAGE = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>Sign in · TTFT Gateway</title>
<link rel="stylesheet" href="/console.css">
</head>
<body class="sign-in">
<main>
<h1>TTFT Gateway</h1>
<p>The console of <span class="mono">{url}</span></p>
{notice}
<form method="post" action="/login">
<label for="key">Admin key</label>
<input id="key" name="key" type="password" required autofocus autocomplete="current-password"
 aria-describedby="key-help">
<p id="key-help" class="help"><code>admin.key</code> of the gateway's configuration, or
<code>admin.read_key</code> to look only.</p>
<label for="name">Your name</label>
<input id="name" name="name" maxlength="60" autocomplete="nickname" aria-describedby="name-help">
<p id="name-help" class="help">Stands in the history beside what you change. May stay empty.</p>
<button type="submit">Sign in</button>
</form>
</main>
</body>
</html>
"""


def add_login(app: FastAPI, remote: Remote, sessions: Sessions, throttle: Throttle) -> None:
    """Mount the two routes."""

    def page(notice: str = "", status: int = 200) -> HTMLResponse:
        shown = f'<p class="notice" role="alert">{escape(notice)}</p>' if notice else ""
        return HTMLResponse(PAGE.format(url=escape(remote.url), notice=shown), status)

    @app.get(SIGN_IN)
    async def form(request: Request) -> Response:
        if request.state.session is not None:
            return RedirectResponse("/", 303)
        return page()

    @app.post(SIGN_IN)
    async def sign_in(request: Request) -> Response:
        address = request.client.host if request.client else ""
        wait = throttle.wait(address)
        if wait:
            answer = page(TOO_MANY.format(seconds=math.ceil(wait)), 429)
            answer.headers["retry-after"] = str(math.ceil(wait))
            return answer
        throttle.begin(address)
        fields = await _fields(request)
        key = fields.get("key", "").strip()
        try:
            role = await remote.role(key)
        except GatewayError as error:
            return page(error.message, 502)
        if role is None:
            log.warning("a sign-in from %s was refused", address)
            await asyncio.sleep(PAUSE)
            return page(UNKNOWN, 401)
        throttle.passed(address)
        sessions.end(token(request.scope))
        name = fields.get("name", "").strip()[:LONGEST_NAME]
        return _welcome(request, sessions.start(key, role, name))

    @app.post("/logout")
    async def sign_out(request: Request) -> Response:
        sessions.end(token(request.scope))
        answer = RedirectResponse(SIGN_IN, 303)
        answer.delete_cookie(cookie_name(request.scope), httponly=True, samesite="strict")
        return answer


def _welcome(request: Request, held: str) -> Response:
    answer = RedirectResponse("/", 303)
    answer.set_cookie(
        cookie_name(request.scope),
        held,
        max_age=int(LIFETIME),
        httponly=True,
        samesite="strict",
        secure=request.url.scheme == "https",
    )
    return answer


async def _fields(request: Request) -> dict[str, str]:
    """The fields of a form; empty if it is longer than a form of ours can be."""
    body = b""
    async for chunk in request.stream():
        body += chunk
        if len(body) > LONGEST_FORM:
            return {}
    parsed = parse_qs(body.decode("utf-8", "replace"))
    return {name: values[0] for name, values in parsed.items()}
