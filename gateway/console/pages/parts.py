"""Small things that pages are made of, and how they write numbers."""

from __future__ import annotations

from typing import Any

from nicegui import ui
from nicegui.elements.mixins.text_element import TextElement


class Heading(TextElement):
    """A heading: its text is shown as it is, whatever it holds."""

    def __init__(self, level: int, text: str) -> None:
        super().__init__(tag=f"h{level}", text=text)


class Text(TextElement):
    """Text in an element of any kind."""

    def __init__(self, tag: str, text: str = "") -> None:
        super().__init__(tag=tag, text=text)


def fact(name: str, value: str = "") -> Text:
    """A line of a `dl`; gives the element of its value."""
    with ui.element("div"):
        Text("dt", name)
        return Text("dd", value)


def draw(chart: ui.echart, options: dict[str, Any]) -> None:
    chart.options.clear()
    chart.options.update(options)
    chart.update()


def milliseconds(value: float | None) -> str:
    if value is None:
        return "-"
    return f"{value / 1000:.2f} s" if value >= 1000 else f"{value:.0f} ms"


def percent(share: float | None) -> str:
    """A share from 0 to 1 as people write it."""
    return "-" if share is None else f"{100 * share:.3g} %"
