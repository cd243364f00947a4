"""How an arm looks: its colour, and what tells it from others without colour."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape
from itertools import cycle
from typing import Any

from gateway.bench.report.parts import told

BLUE, ORANGE, GREEN, PURPLE = "#2a7de1", "#e0701a", "#1a9c74", "#b554a8"
YELLOW, RED, INDIGO = "#b58900", "#d2453d", "#5b6abf"

COLOURS = {
    "control": BLUE,
    "baseline": INDIGO,
    "canary": ORANGE,
    "chunk-64": ORANGE,
    "chunk-128": RED,
    "chunk-256": YELLOW,
    "chunk-512": BLUE,
    "chunk-1024": GREEN,
    "chunk-2048": PURPLE,
}
"""Hues as on the Grafana dashboards, in the tones of the console, which are readable on white as
on black. Other arms take what is left, in their order."""

PALETTE = (BLUE, ORANGE, GREEN, PURPLE, YELLOW, INDIGO, RED)
DASHES = ("solid", "dash", "dot", "dashdot", "longdash")
SYMBOLS = ("circle", "diamond", "square", "triangle-up", "x", "cross", "star")
LONGEST_NAME = 40


@dataclass(frozen=True, slots=True)
class Look:
    """Attributes:
    label: the arm's name, for Plotly, which takes text for HTML.
    dash, symbol: in Plotly's words; another pair for each of 35 arms.
    """

    label: str
    colour: str
    dash: str
    symbol: str

    def line(self) -> dict[str, Any]:
        return {"color": self.colour, "dash": self.dash, "width": 2}

    def marker(self, size: int = 9, opacity: float = 1.0) -> dict[str, Any]:
        return {"color": self.colour, "symbol": self.symbol, "size": size, "opacity": opacity}


def looks(arms: Sequence[str]) -> Mapping[str, Look]:
    """One for each arm, in the same order."""
    taken = {COLOURS[arm] for arm in arms if arm in COLOURS}
    left = cycle([one for one in PALETTE if one not in taken] or PALETTE)
    return {
        arm: Look(
            label=escape(_short(told(arm)), quote=False),
            colour=COLOURS.get(arm) or next(left),
            dash=DASHES[number % len(DASHES)],
            symbol=SYMBOLS[number % len(SYMBOLS)],
        )
        for number, arm in enumerate(arms)
    }


def _short(name: str) -> str:
    return name if len(name) <= LONGEST_NAME else f"{name[: LONGEST_NAME - 1]}…"


def layout(x: Mapping[str, Any], y: Mapping[str, Any]) -> dict[str, Any]:
    """Of every chart. Text and rules get their colours from the style sheet."""
    axis = {"automargin": True, "zeroline": False, "ticklabelstandoff": 6}
    return {
        "height": 400,
        "margin": {"l": 8, "r": 28, "t": 8, "b": 8},
        "paper_bgcolor": "rgba(0,0,0,0)",
        "plot_bgcolor": "rgba(0,0,0,0)",
        "font": {"family": "system-ui, sans-serif", "size": 13},
        "legend": {"orientation": "h", "x": 0, "y": 1.02, "yanchor": "bottom"},
        "hoverlabel": {"bgcolor": "#1c2430", "font": {"color": "#ffffff"}},
        "showlegend": True,
        "xaxis": {**axis, **x},
        "yaxis": {**axis, **y},
    }


def titled(text: str, **more: Any) -> dict[str, Any]:
    """An axis."""
    return {"title": {"text": text, "standoff": 8}, **more}
