"""All dashboards as the JSON that Grafana reads, one file each, named by its uid."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from grafana_foundation_sdk.cog.encoder import JSONEncoder

from grafana.source import safe_shift, time_spent, usage, which_arm

BUILDERS = (which_arm.build, safe_shift.build, time_spent.build, usage.build)


def texts() -> dict[str, str]:
    """The text of each file, by its name."""
    found = {}
    for builder in BUILDERS:
        dashboard = json.loads(JSONEncoder().encode(builder().build()))
        _complete(dashboard)
        text = json.dumps(dashboard, indent=2, sort_keys=True, ensure_ascii=False)
        found[f"{dashboard['uid']}.json"] = text + "\n"
    return found


def _complete(dashboard: dict[str, Any]) -> None:
    """What the SDK cannot be told."""
    # Links to panels need numbers that stay.
    for number, panel in enumerate(dashboard["panels"], start=1):
        panel["id"] = number
    # It knows one place only, inside a menu; without it they stand at the top.
    for shown in (*dashboard["links"], *dashboard["annotations"]["list"]):
        del shown["placement"]


def write(folder: Path) -> None:
    """Write all files into an existing folder."""
    for name, text in texts().items():
        (folder / name).write_text(text)
