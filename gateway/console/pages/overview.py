"""Overview: which arm is faster, how traffic is split, which servers are well."""

from __future__ import annotations

from nicegui import ui
from nicegui.events import ValueChangeEventArguments

from gateway.admin.views import ModelView
from gateway.console import charts
from gateway.console.pages.arms import ArmCards
from gateway.console.pages.backends import Backends
from gateway.console.pages.frame import Site, every, frame
from gateway.console.pages.parts import Heading, draw
from gateway.console.pages.weights import Weights
from gateway.console.past import Past
from gateway.console.sessions import Session
from gateway.errors import GatewayError

REFRESH = 2.0
SPANS = {300: "5 min", 900: "15 min", 3600: "60 min"}


async def overview(site: Site, session: Session) -> None:
    with frame(site, session, "Overview"):
        try:
            models = await site.remote.models(session)
        except GatewayError as error:
            ui.label(error.message).classes("notice")
            return
        if not models:
            ui.label("The configuration has no model.").classes("notice")
            return
        await _Overview(site, session, models).open()


class _Overview:
    def __init__(self, site: Site, session: Session, models: list[ModelView]) -> None:
        self._site = site
        self._session = session
        self._models = {model.name: model for model in models}
        self._model = models[0]
        self._span = 300
        with ui.element("div").classes("toolbar"):
            names = list(self._models)
            picker = ui.select(names, value=names[0], label="Model", on_change=self._choose)
            picker.props("outlined dense").classes("grow")
            picker.set_visibility(len(names) > 1)
            ui.toggle(SPANS, value=300, on_change=self._stretch).props("no-caps dense")
        self._trouble = ui.label().classes("notice")
        self._trouble.set_visibility(False)
        self._body = ui.element("div").classes("stack")
        self._fill()
        every(REFRESH, self._refresh)

    async def open(self) -> None:
        await self._show()

    @property
    def _arms(self) -> list[str]:
        return [arm.name for arm in self._model.arms]

    def _fill(self) -> None:
        """Make the sections anew, for another model or other arms."""
        self._body.clear()
        arms = self._arms
        with self._body:
            self._cards = ArmCards(self._model)
            with ui.element("section").classes("card"):
                Heading(2, "Time to first token")
                ui.label(
                    "As the gateway measures it, for the requests of 30 s at a time: P50 solid, "
                    "P90 dashed, P99 dotted. Logarithmic."
                ).classes("help")
                self._lines = ui.echart({}, renderer="svg").classes("chart lines")
            with ui.element("section").classes("card"):
                Heading(2, "How it is spread")
                ui.label(
                    "Each column is a moment, each row a time to first token: the stronger the "
                    "colour, the larger the share of that moment's requests. One scale for all."
                ).classes("help")
                with ui.element("div").classes("pair"):
                    self._heat = {arm: self._one_heatmap(arm) for arm in arms}
            self._weights = Weights(self._site, self._session, self._model, self._refresh)
            self._backends = Backends(self._site, self._session, self._model, self._refresh)

    def _one_heatmap(self, arm: str) -> ui.echart:
        with ui.element("div"):
            Heading(3, arm)
            return ui.echart({}, renderer="svg").classes("chart heat")

    async def _show(self) -> None:
        self._draw()
        self._backends.show(self._model)
        await self._weights.show(self._model)

    def _draw(self) -> None:
        now = self._site.now()
        past = Past(self._site.watch, self._model.name, self._arms, self._span, now)
        self._cards.show(self._model, past.figures())
        draw(self._lines, charts.quantile_lines(past.lines(), self._arms, self._span))
        heat = past.heat()
        for position, (arm, chart) in enumerate(self._heat.items()):
            draw(chart, charts.heatmap(heat, arm, position, self._span))

    async def _refresh(self) -> None:
        try:
            models = await self._site.remote.models(self._session)
        except GatewayError as error:
            self._trouble.text = error.message
            self._trouble.set_visibility(True)
            return
        self._trouble.set_visibility(False)
        self._models = {model.name: model for model in models}
        before = self._model
        self._model = self._models.get(before.name) or models[0]
        if _shape(before) != _shape(self._model):
            self._fill()
        await self._show()

    async def _choose(self, event: ValueChangeEventArguments[str]) -> None:
        self._model = self._models[event.value]
        self._fill()
        await self._show()

    def _stretch(self, event: ValueChangeEventArguments[int]) -> None:
        self._span = event.value
        self._draw()


def _shape(model: ModelView) -> object:
    return model.name, [(arm.name, [one.name for one in arm.backends]) for arm in model.arms]
