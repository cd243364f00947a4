"""What all pages have around them: the way to the others, dark or light, the way out."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from nicegui import ui

from gateway.clients.profile import Profile
from gateway.clients.setup import Target
from gateway.console.guard import SIGN_IN
from gateway.console.pages.parts import Heading
from gateway.console.remote import Remote
from gateway.console.sessions import Role, Session, Sessions
from gateway.console.watch import Watch
from gateway.errors import GatewayError

PAGES = {"Overview": "/", "Playground": "/playground", "Keys": "/keys", "Connect": "/connect"}
LOOKS = {None: "auto", False: "light", True: "dark"}
_NEXT: dict[bool | None, bool | None] = {None: False, False: True, True: None}


@dataclass(frozen=True, slots=True)
class Instructions:
    """Attributes:
    blocks: titles and texts to paste.
    notes: sentences worth knowing.
    """

    blocks: Sequence[tuple[str, str]]
    notes: Sequence[str]


MakeInstructions = Callable[[Profile, Target], Instructions]


@dataclass(frozen=True, slots=True)
class Site:
    """What pages are made of.

    Attributes:
        now: the clock of `watch`.
        settings: what a client's user sets, for a profile and a target.
        client_key: a gateway key for the playground, for who signs in with admin.key; or nothing.
    """

    remote: Remote
    watch: Watch
    sessions: Sessions
    now: Callable[[], float]
    settings: MakeInstructions
    client_key: str


@contextmanager
def frame(site: Site, session: Session, title: str) -> Iterator[None]:
    """A page's surroundings; its content is made within."""
    ui.page_title(f"{title} · TTFT Gateway")
    ui.add_head_html('<link rel="stylesheet" href="/console.css">')
    look = ui.dark_mode(session.dark)
    with ui.header().classes("top"):
        ui.link("Skip to content", "#content").classes("skip")
        ui.label("TTFT Gateway").classes("brand")
        with ui.element("nav").props('aria-label="Pages"'):
            for name, path in PAGES.items():
                link = ui.link(name, path)
                if name == title:
                    link.props('aria-current="page"')
        with ui.element("div").classes("corner"):
            if session.role is Role.READ:
                ui.label("read only").classes("badge")
            _look_button(session, look)
            with ui.element("form").props('method="post" action="/logout"'):
                ui.button("Sign out").props('type="submit" flat dense no-caps')
    _leave_with(site, session)
    with ui.element("div").classes("page").props('id="content" tabindex="-1"'):
        Heading(1, title)
        yield


def _look_button(session: Session, look: ui.dark_mode) -> None:
    def turn() -> None:
        session.dark = _NEXT[session.dark]
        look.value = session.dark
        button.text = LOOKS[session.dark]

    button = ui.button(LOOKS[session.dark], icon="contrast", on_click=turn)
    button.props('flat dense no-caps aria-label="Light or dark"')


def _leave_with(site: Site, session: Session) -> None:
    """A page left open shows nothing once its session is over."""

    def check() -> None:
        if not site.sessions.holds(session):
            ui.navigate.to(SIGN_IN)

    ui.timer(2.0, check)


def every(seconds: float, work: Callable[[], Awaitable[None]]) -> None:
    """Do something again and again while somebody looks: a page that lost its browser waits for
    it, and has nobody to draw for."""
    client = ui.context.client

    async def tick() -> None:
        if client.has_socket_connection:
            await work()

    ui.timer(seconds, tick)


async def attempt(site: Site, session: Session, work: Callable[[], Awaitable[None]]) -> bool:
    """Do something at the gateway for a session that still holds; say what went wrong."""
    if not site.sessions.holds(session):
        ui.navigate.to(SIGN_IN)
        return False
    try:
        await work()
    except GatewayError as error:
        ui.notify(error.message, type="negative", multi_line=True, close_button="Close")
        return False
    return True
