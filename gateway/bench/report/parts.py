"""What a report is made of: tables, charts, and how arms and numbers are written."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

NONE = "-"
WHOLE = "all"
"""What an arm without a name is called: requests go where whoever answers sends them."""


@dataclass(frozen=True, slots=True)
class Table:
    """Attributes:
    caption: what it shows.
    head: of the columns; the first names the rows.
    rows: as many cells each as the head.
    """

    caption: str
    head: Sequence[str]
    rows: Sequence[Sequence[str]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Chart:
    """One chart with its figures in words.

    Attributes:
        key: its id in the page.
        notes: how to read it and what was left out, a sentence each.
        said: for who does not see it, in a sentence.
        figure: Plotly's `data` and `layout`; None where there is nothing to draw.
        table: its figures; None where there are none.
        absent: why there is no figure.
    """

    key: str
    title: str
    notes: Sequence[str] = ()
    said: str = ""
    figure: Mapping[str, Any] | None = None
    table: Table | None = None
    absent: str = ""


def told(arm: str) -> str:
    return arm or WHOLE


def milliseconds(value: float | None) -> str:
    return NONE if value is None else f"{_number(value)} ms"


def share(value: float | None) -> str:
    return NONE if value is None else f"{100 * value:.3g} %"


def plain(value: float | None) -> str:
    return NONE if value is None else _number(value)


def _number(value: float) -> str:
    """Four digits, or all of those before the point."""
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.4g}"
