"""The generated dashboards, as Grafana reads them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parents[2] / "grafana" / "dashboards"

Panel = dict[str, Any]


def dashboards() -> dict[str, dict[str, Any]]:
    """All of them, by uid."""
    return {path.stem: json.loads(path.read_text()) for path in sorted(FOLDER.glob("*.json"))}


def panels(dashboard: dict[str, Any]) -> list[Panel]:
    """Its panels but for rows, none of which is collapsed."""
    return [panel for panel in dashboard["panels"] if panel["type"] != "row"]


@dataclass(frozen=True)
class Target:
    """One query of a panel."""

    dashboard: str
    panel: str
    repeat: str | None
    letter: str
    expression: str
    legend: str

    def __str__(self) -> str:
        return f"{self.dashboard}: {self.panel} {self.letter}"


def targets() -> Iterator[Target]:
    for uid, dashboard in dashboards().items():
        for panel in panels(dashboard):
            for one in panel.get("targets", []):
                yield Target(
                    uid,
                    panel["title"],
                    panel.get("repeat"),
                    one["refId"],
                    one["expr"],
                    one["legendFormat"],
                )


def filled(expression: str, **variables: str) -> str:
    """The expression with Grafana's own and the dashboard's variables put in.

    A minute's worth of scrapes is what Grafana would take for the rate interval; here it is
    longer, so that tests that run after the traffic still see it.
    """
    for name, value in {"__rate_interval": "3m", "__range": "10m", **variables}.items():
        expression = expression.replace(f"${name}", value)
    return expression
