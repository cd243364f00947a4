"""Keys: who may do what, and what they use now."""

from __future__ import annotations

from nicegui import ui

from gateway.admin.views import KeyView
from gateway.console.pages.frame import Site, every, frame
from gateway.console.pages.parts import Heading, Text, fact
from gateway.console.sessions import Session
from gateway.errors import GatewayError

REFRESH = 2.0
ROWS = ("Running", "Requests this minute", "Tokens this minute", "Models", "Arms by hand")


async def keys(site: Site, session: Session) -> None:
    with frame(site, session, "Keys"):
        ui.label(
            "Keys stand in the gateway's configuration; the gateway shows their names only."
        ).classes("help")
        await _Keys(site, session).refresh()


class _Keys:
    def __init__(self, site: Site, session: Session) -> None:
        self._site = site
        self._session = session
        self._facts: dict[str, dict[str, Text]] = {}
        self._trouble = ui.label().classes("notice")
        self._body = ui.element("div").classes("cards")
        every(REFRESH, self.refresh)

    async def refresh(self) -> None:
        try:
            found = await self._site.remote.keys(self._session)
            self._trouble.text = "" if found else "The configuration has no key."
        except GatewayError as error:
            found, self._trouble.text = [], error.message
        self._trouble.set_visibility(bool(self._trouble.text))
        if [key.name for key in found] != list(self._facts):
            self._build(found)
        for key in found:
            for name, text in _texts(key).items():
                self._facts[key.name][name].text = text

    def _build(self, found: list[KeyView]) -> None:
        self._body.clear()
        with self._body:
            self._facts = {key.name: _card(key) for key in found}


def _card(key: KeyView) -> dict[str, Text]:
    with ui.element("section").classes("card"):
        Heading(2, key.name)
        with ui.element("dl").classes("one"):
            return {name: fact(name) for name in ROWS}


def _texts(key: KeyView) -> dict[str, str]:
    arms = key.arms if isinstance(key.arms, str) else ", ".join(key.arms)
    texts = (
        str(key.running)
        if key.max_concurrency is None
        else f"{key.running} of {key.max_concurrency}",
        used(key.requests_per_minute, key.requests_left),
        used(key.tokens_per_minute, key.tokens_left),
        "all" if key.models == ["*"] else ", ".join(key.models),
        arms,
    )
    return dict(zip(ROWS, texts, strict=True))


def used(limit: int | None, left: int | None) -> str:
    """What was used of a limit."""
    if limit is None or left is None:
        return "no limit"
    return f"{limit - left:,} of {limit:,}"
