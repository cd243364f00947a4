"""Makes the console: its parts, its pages, and the guard before them."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from importlib.resources import files

from fastapi import FastAPI, Request, Response
from nicegui import ui
from starlette.types import ASGIApp

from gateway.console.guard import Guard
from gateway.console.login import add_login
from gateway.console.pages.connect import connect
from gateway.console.pages.frame import MakeInstructions, Site
from gateway.console.pages.keys import keys
from gateway.console.pages.overview import overview
from gateway.console.pages.playground import playground
from gateway.console.reading import read
from gateway.console.remote import Remote
from gateway.console.sessions import Session, Sessions, Throttle
from gateway.console.watch import Watch
from gateway.errors import GatewayError

INTERVAL = 2.0
"""Seconds between two readings of the gateway's metrics."""

PATIENCE = 30.0
"""Seconds in which a browser that lost its connection, as phones do, finds its page as it was."""

MakePage = Callable[[Site, Session], Awaitable[None]]

_PAGES: dict[str, MakePage] = {
    "/": overview,
    "/playground": playground,
    "/keys": keys,
    "/connect": connect,
}

log = logging.getLogger("gateway.console")


def create_app(remote: Remote, settings: MakeInstructions, client_key: str = "") -> ASGIApp:
    """The console of one gateway. A process can hold one: the library keeps its pages globally.

    Args: as in `Site`.
    """
    sessions = Sessions(time.monotonic)
    site = Site(remote, Watch(), sessions, time.monotonic, settings, client_key)

    @asynccontextmanager
    async def reading(_: FastAPI) -> AsyncIterator[None]:
        task = asyncio.create_task(_keep_reading(remote, site.watch))
        yield
        task.cancel()
        await asyncio.wait((task,))
        await remote.client.aclose()

    app = FastAPI(openapi_url=None, lifespan=reading)
    style = files("gateway.console").joinpath("static/console.css").read_text()

    @app.get("/console.css")
    async def css() -> Response:
        return Response(style, media_type="text/css")

    add_login(app, remote, sessions, Throttle(time.monotonic))
    _add_pages(site)
    ui.run_with(
        app,
        title="TTFT Gateway",
        dark=None,
        language="en-US",
        reconnect_timeout=PATIENCE,
        tailwind=False,
        show_welcome_message=False,
    )
    return Guard(app, sessions)


def _add_pages(site: Site) -> None:
    for path, make in _PAGES.items():
        _add_page(site, path, make)


def _add_page(site: Site, path: str, make: MakePage) -> None:
    @ui.page(path)
    async def _(request: Request) -> None:
        await make(site, _session(request))


def _session(request: Request) -> Session:
    session: Session = request.state.session
    return session


async def _keep_reading(remote: Remote, watch: Watch) -> None:
    """Reads until cancelled; says once what is in the way, and once that it no longer is."""
    trouble = ""
    while True:
        try:
            watch.add(time.monotonic(), read(await remote.metrics()))
            found = ""
        except (GatewayError, ValueError) as error:
            found = str(error)
        if found != trouble:
            log.warning("%s", found or "the gateway's metrics can be read again")
            trouble = found
        await asyncio.sleep(INTERVAL)
