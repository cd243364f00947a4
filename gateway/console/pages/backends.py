"""The servers of a model: how they are, what they run, and a way to take one out."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from nicegui import ui

from gateway.admin.backend_view import BackendView
from gateway.admin.views import ModelView
from gateway.console.pages.frame import Site, attempt
from gateway.console.pages.parts import Heading, Text, fact
from gateway.console.sessions import Role, Session

Changed = Callable[[], Awaitable[None]]


class Backends:
    """A section of the overview.

    Args:
        changed: called once a server was taken out or put back.
    """

    def __init__(self, site: Site, session: Session, model: ModelView, changed: Changed) -> None:
        with ui.element("section").classes("stack"):
            Heading(2, "Servers")
            with ui.element("div").classes("cards"):
                self._cards = {
                    one.name: _Card(site, session, one, changed)
                    for arm in model.arms
                    for one in arm.backends
                }

    def show(self, model: ModelView) -> None:
        for arm in model.arms:
            for one in arm.backends:
                self._cards[one.name].show(one)


class _Card:
    def __init__(
        self, site: Site, session: Session, backend: BackendView, changed: Changed
    ) -> None:
        self._site = site
        self._session = session
        self._backend = backend
        self._changed = changed
        with ui.element("div").classes("card").mark(f"backend-{backend.name}"):
            with ui.element("div").classes("title"):
                Heading(3, backend.name)
                self._state = ui.label().classes("badge")
                self._button = ui.button(on_click=self._ask).props("no-caps flat dense")
                self._button.classes("end").set_enabled(session.role is Role.ADMIN)
            Text("p", backend.url).classes("help mono")
            with ui.element("dl").classes("one"):
                self._running = fact("Running")
                self._apis = fact("APIs")
                self._engine = fact("Engine says")
                self._declared = fact("Declared")
                self._differs = fact("Differs")
                self._parts = fact("First token")
        self.show(backend)

    def show(self, backend: BackendView) -> None:
        self._backend = backend
        self._state.text = backend.state()
        good = backend.usable
        self._state.classes(add="good" if good else "bad", remove="bad" if good else "good")
        self._button.text = "Take out …" if backend.enabled else "Put back"
        self._running.text = f"{backend.outstanding} of {backend.max_concurrency}"
        self._apis.text = "not known yet" if backend.apis is None else ", ".join(backend.apis)
        self._engine.text = _engine(backend)
        self._declared.text = _declared(backend)
        self._differs.text = "; ".join(backend.differences) or "in nothing that it tells"
        self._parts.text = _parts(backend)

    async def _ask(self) -> None:
        backend = self._backend
        if not backend.enabled:
            await self._set(backend.name, True)
            return
        with ui.dialog() as dialog, ui.element("div").classes("card dialog"):
            Heading(2, f"Take {backend.name} out?")
            ui.label(
                "It gets no new requests until it is put back, restarts included; what runs on it "
                "finishes. Its share goes to the other servers of its arm, or to other arms where "
                "the model allows that."
            )
            with ui.element("div").classes("toolbar"):
                out = ui.button("Take out", on_click=lambda: dialog.submit(True))
                out.props("no-caps unelevated color=negative")
                ui.button("Cancel", on_click=dialog.close).props("no-caps flat autofocus")
        agreed = await dialog
        dialog.delete()
        if agreed:
            await self._set(backend.name, False)

    async def _set(self, name: str, enabled: bool) -> None:
        async def work() -> None:
            await self._site.remote.set_enabled(self._session, name, enabled)

        if await attempt(self._site, self._session, work):
            ui.notify(f"{name} is {'back' if enabled else 'out'}.", type="positive")
        await self._changed()


def _engine(backend: BackendView) -> str:
    said = [f"version {backend.engine_version}"] if backend.engine_version else []
    if backend.max_model_len:
        said.append(f"context of {backend.max_model_len:,} tokens")
    if backend.running is not None:
        told = backend.running.model_dump(exclude_none=True)
        said += [f"{name} {_shown(value)}" for name, value in told.items()]
    return ", ".join(said) or "nothing yet"


def _parts(backend: BackendView) -> str:
    """Where its first tokens' time went lately."""
    parts = backend.ttft_parts
    if parts is None:
        return "not counted yet"
    named = {
        "gateway": parts.gateway_ms,
        "network": parts.network_ms,
        "queue": parts.engine_queue_ms,
        "prefill": parts.engine_prefill_ms,
        "rest of the engine": parts.engine_other_ms,
    }
    told = ", ".join(f"{name} {ms:.1f}" for name, ms in named.items() if ms is not None)
    fit = "" if parts.comparable else " (the engine counted other requests, too)"
    return f"mean {parts.total_ms:.1f} ms of {parts.requests}: {told}{fit}"


def _declared(backend: BackendView) -> str:
    """The engine settings that the configuration states."""
    if backend.engine is None:
        return "nothing"
    stated = backend.engine.model_dump(exclude_none=True)
    return ", ".join(f"{name} {_shown(value)}" for name, value in stated.items()) or "nothing"


def _shown(value: object) -> str:
    if isinstance(value, bool):
        return "on" if value else "off"
    return str(value)
