"""The arms of a model as cards: the figures that matter, beside each other."""

from __future__ import annotations

from nicegui import ui

from gateway.admin.views import ArmView, ModelView
from gateway.console import charts
from gateway.console.pages.parts import Heading, fact, milliseconds, percent
from gateway.console.past import QUANTILES, Figures

ROWS = ("Share of the split", "Share of the traffic", "Requests", "Errors", "P99 / P50", "Cached")


class ArmCards:
    """One card an arm."""

    def __init__(self, model: ModelView) -> None:
        with ui.element("div").classes("cards"):
            self._cards = {
                arm.name: _Card(arm, charts.colour(position))
                for position, arm in enumerate(model.arms)
            }

    def show(self, model: ModelView, figures: dict[str, Figures]) -> None:
        for arm in model.arms:
            self._cards[arm.name].show(arm, figures[arm.name])


class _Card:
    def __init__(self, arm: ArmView, colour: str) -> None:
        with ui.element("section").classes("card arm").style(f"--arm: {colour}"):
            with ui.element("div").classes("title"):
                Heading(2, arm.name)
                if arm.role:
                    ui.label(arm.role).classes("badge")
            with ui.element("div").classes("big"):
                self._big = {name: _figure(name) for name in QUANTILES}
            with ui.element("dl"):
                self._rows = {name: fact(name) for name in ROWS}

    def show(self, arm: ArmView, figures: Figures) -> None:
        for name, label in self._big.items():
            label.text = milliseconds(figures.quantiles[name])
        texts = (
            percent(arm.share),
            percent(figures.share),
            f"{figures.requests:,}",
            f"{figures.errors:,}",
            "-" if figures.jitter is None else f"{figures.jitter:.1f}",
            percent(figures.cached_share),
        )
        for row, text in zip(self._rows.values(), texts, strict=True):
            row.text = text


def _figure(name: str) -> ui.label:
    with ui.element("div"):
        ui.label(name).classes("help")
        return ui.label().classes("figure").mark(name)
