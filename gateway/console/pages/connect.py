"""Connect: the base URL, key and model that a client needs, and what to paste where."""

from __future__ import annotations

from urllib.parse import urlsplit

from nicegui import ui

from gateway.admin.views import ModelView
from gateway.clients.known import CLIENTS
from gateway.clients.setup import KEY_VARIABLE, Target
from gateway.console.pages.frame import Site, frame
from gateway.console.pages.parts import Heading, Text
from gateway.console.sessions import Session
from gateway.errors import GatewayError


async def connect(site: Site, session: Session) -> None:
    with frame(site, session, "Connect"):
        try:
            models = await site.remote.models(session)
        except GatewayError as error:
            ui.label(error.message).classes("notice")
            return
        if not models:
            ui.label("The configuration has no model.").classes("notice")
            return
        _Connect(site, models)


class _Connect:
    def __init__(self, site: Site, models: list[ModelView]) -> None:
        self._site = site
        self._models = {model.name: model for model in models}
        titles = {name: profile.title for name, profile in CLIENTS.items()}
        with ui.element("section").classes("card fields"):
            self._client = ui.select(titles, value=next(iter(titles)), label="Client")
            self._model = ui.select(list(self._models), value=models[0].name, label="Model")
            self._address = ui.input(
                "The gateway's address, as the client sees it", value=site.remote.url
            )
            for field in (self._client, self._model, self._address):
                field.props("outlined").on_value_change(self._show)
        self._body = ui.element("div").classes("stack")
        self._show()

    def _show(self) -> None:
        self._body.clear()
        profile = CLIENTS[str(self._client.value)]
        address = str(self._address.value or "").strip().rstrip("/").removesuffix("/v1")
        with self._body:
            if urlsplit(address).scheme not in ("http", "https"):
                ui.label("The address begins with http:// or https://.").classes("notice")
                return
            target = Target(address, None, str(self._model.value), self._window())
            with ui.element("section").classes("card"):
                Heading(2, profile.title)
                with ui.element("dl").classes("one"):
                    _copied("Base URL", target.base_url(profile.api))
                    _copied("Model", target.model)
                ui.label(
                    f"The key is one of those in the gateway's configuration. Below it is called "
                    f"{KEY_VARIABLE}; this page does not know it."
                ).classes("help")
            instructions = self._site.settings(profile, target)
            for title, text in instructions.blocks:
                _snippet(title, text)
            for note in instructions.notes:
                ui.label(note).classes("help")

    def _window(self) -> int | None:
        """Tokens that every server of the model takes, as far as they say."""
        model = self._models[str(self._model.value)]
        said = [one.max_model_len for arm in model.arms for one in arm.backends]
        return min((length for length in said if length), default=None)


def _copied(name: str, value: str) -> None:
    with ui.element("div").classes("copied"):
        Text("dt", name)
        with ui.element("dd"):
            Text("code", value)
            _copy(value, name)


def _snippet(title: str, text: str) -> None:
    with ui.element("section").classes("card"):
        with ui.element("div").classes("title"):
            Heading(3, title)
            _copy(text, title).classes("end")
        Text("pre", text).props('tabindex="0"')


def _copy(text: str, what: str) -> ui.button:
    button = ui.button("Copy", icon="content_copy", on_click=lambda: _put(text))
    return button.props("no-caps flat dense").props(f'aria-label="Copy: {what}"')


def _put(text: str) -> None:
    ui.clipboard.write(text)
    ui.notify("Copied.")
