"""Keys: who may do what, what they use now, and what they have used."""

from __future__ import annotations

from nicegui import ui

from gateway.admin.views import KeyUseView, KeyView
from gateway.console.pages.frame import Site, every, frame
from gateway.console.pages.parts import Heading, Text, fact, percent
from gateway.console.sessions import Session
from gateway.errors import GatewayError

REFRESH = 2.0
ROWS = (
    *("Running", "Requests this minute", "Tokens this minute", "Models", "Arms by hand"),
    *("Requests", "Prompt tokens", "Generated tokens", "Turned away"),
)


async def keys(site: Site, session: Session) -> None:
    with frame(site, session, "Keys"):
        ui.label(
            "Keys stand in the gateway's configuration; the gateway shows their names only. "
            "Requests, tokens and who was turned away are since the gateway's start."
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
        f"{key.used.requests:,}",
        _prompt(key.used),
        f"{key.used.completion_tokens:,}",
        _turned_away(key.used),
    )
    return dict(zip(ROWS, texts, strict=True))


def used(limit: int | None, left: int | None) -> str:
    """What was used of a limit."""
    if limit is None or left is None:
        return "no limit"
    return f"{limit - left:,} of {limit:,}"


def _prompt(used: KeyUseView) -> str:
    if not used.prompt_tokens:
        return "0"
    cached = percent(used.cached_prompt_tokens / used.prompt_tokens)
    return f"{used.prompt_tokens:,} ({cached} cached)"


def _turned_away(used: KeyUseView) -> str:
    """How many, and why, the most frequent reason first."""
    reasons = sorted(((n, why) for why, n in used.refused.items()), reverse=True)
    if not reasons:
        return "0"
    said = ", ".join(f"{why.replace('_', ' ')} {n:,}" for n, why in reasons)
    return f"{sum(n for n, _ in reasons):,} ({said})"
