"""The split of a model: sliders that ask before they shift, and who shifted it when and why."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping

from nicegui import ui
from nicegui.events import ValueChangeEventArguments

from gateway.admin.views import ChangeView, ModelView
from gateway.console import charts
from gateway.console.pages.frame import Site, attempt
from gateway.console.pages.parts import Heading, Text, percent
from gateway.console.sessions import Role, Session
from gateway.console.split import moved, percents

SHOWN = 10
LONGEST_REASON = 500


class Weights:
    """A section of the overview.

    Args:
        shifted: called once a shift is in force.
    """

    def __init__(
        self,
        site: Site,
        session: Session,
        model: ModelView,
        shifted: Callable[[], Awaitable[None]],
    ) -> None:
        self._site = site
        self._session = session
        self._model = model
        self._shifted = shifted
        self._draft = percents({arm.name: arm.weight for arm in model.arms})
        self._touched = False
        self._quiet = False
        self._known: tuple[str, int] | None = None
        with ui.element("section").classes("card"):
            with ui.element("div").classes("title"):
                Heading(2, "Split")
                self._revision = ui.label().classes("badge")
            self._sliders = {
                arm.name: self._slider(arm.name, charts.colour(position))
                for position, arm in enumerate(model.arms)
            }
            self._buttons()
            Heading(3, "History").classes("above")
            self._history = ui.element("ol").classes("history")
        self._may_shift()

    async def show(self, model: ModelView) -> None:
        """Follow what is in force, unless somebody is about to shift it."""
        changed = model.revision != self._model.revision
        self._model = model
        self._revision.text = f"revision {model.revision}"
        if changed and self._touched:
            ui.notify("Somebody else shifted this split: the sliders start anew.", type="warning")
        if changed or not self._touched:
            self._reset()
        if self._known != (model.name, model.revision):
            self._known = (model.name, model.revision)
            await attempt(self._site, self._session, self._read_history)

    def _slider(self, arm: str, colour: str) -> tuple[ui.slider, ui.label]:
        with ui.element("div").classes("slider").style(f"--arm: {colour}"):
            ui.label(arm).classes("name")
            slider = ui.slider(min=0, max=100, step=1, value=self._draft[arm])
            slider.props(f'aria-label="Share of {arm} in percent"').mark(f"share-{arm}")
            slider.on_value_change(lambda event: self._move(arm, event))
            return slider, ui.label().classes("value")

    def _buttons(self) -> None:
        with ui.element("div").classes("toolbar"):
            self._shift = ui.button("Shift …", on_click=self._ask).props("no-caps unelevated")
            self._undo = ui.button("Undo", on_click=self._reset).props("no-caps flat")

    def _move(self, arm: str, event: ValueChangeEventArguments[float]) -> None:
        if self._quiet:
            return
        self._touched = True
        self._put(moved(self._draft, arm, round(event.value)))

    def _reset(self) -> None:
        self._touched = False
        self._put(percents({arm.name: arm.weight for arm in self._model.arms}))

    def _put(self, draft: dict[str, int]) -> None:
        self._draft = draft
        self._quiet = True
        for arm in self._model.arms:
            slider, label = self._sliders[arm.name]
            slider.value = draft[arm.name]
            now = percent(arm.share)
            label.text = f"{now} → {draft[arm.name]} %" if self._touched else now
        self._quiet = False
        self._may_shift()

    def _may_shift(self) -> None:
        writes = self._session.role is Role.ADMIN and len(self._model.arms) > 1
        for slider, _ in self._sliders.values():
            slider.set_enabled(writes)
        self._shift.set_enabled(writes and self._touched)
        self._undo.set_enabled(writes and self._touched)

    async def _ask(self) -> None:
        model, weights = self._model, {arm: float(share) for arm, share in self._draft.items()}
        with ui.dialog() as dialog, ui.element("div").classes("card dialog"):
            Heading(2, f"Shift the traffic of {model.name}?")
            with ui.element("ul"):
                for arm in model.arms:
                    Text("li", f"{arm.name}: {percent(arm.share)} → {weights[arm.name]:g} %")
            ui.label("Sessions that are on an arm whose share shrinks may move.").classes("help")
            reason = ui.input("Why (for the history)").props("outlined autofocus")
            reason.props(f"maxlength={LONGEST_REASON}")
            with ui.element("div").classes("toolbar"):
                ui.button("Shift", on_click=lambda: dialog.submit(True)).props("no-caps unelevated")
                ui.button("Cancel", on_click=dialog.close).props("no-caps flat")
        agreed = await dialog
        dialog.delete()
        if agreed:
            await self._do(model, weights, (reason.value or "").strip()[:LONGEST_REASON])

    async def _do(self, model: ModelView, weights: dict[str, float], reason: str) -> None:
        async def work() -> None:
            await self._site.remote.set_weights(self._session, model, weights, reason)

        if await attempt(self._site, self._session, work):
            ui.notify("Shifted.", type="positive")
        self._touched = False
        await self._shifted()

    async def _read_history(self) -> None:
        changes = await self._site.remote.history(self._session, self._model.name, SHOWN)
        self._history.clear()
        with self._history:
            for change in changes:
                _entry(change)
            if not changes:
                Text("li", "Never shifted: the weights are those of the file.").classes("help")


def _entry(change: ChangeView) -> None:
    with ui.element("li"):
        with ui.element("div").classes("title"):
            Text("strong", _words(change))
            Text("span", f"revision {change.revision}").classes("badge")
        Text("div", change.reason or "no reason given")
        Text("div", f"{change.by}, {change.at:%Y-%m-%d %H:%M:%S} UTC").classes("help")


def _words(change: ChangeView) -> str:
    before, after = _shares(change.before), _shares(change.after)
    parts = (
        f"{arm} {percent(before.get(arm, 0.0))} → {percent(share)}"
        if before
        else f"{arm} {percent(share)}"
        for arm, share in after.items()
    )
    return ", ".join(parts)


def _shares(weights: Mapping[str, float]) -> dict[str, float]:
    total = sum(weights.values())
    return {arm: weight / total for arm, weight in weights.items()} if total else {}
