"""All dashboards as the JSON that Grafana reads, one file each, named by its uid."""

from __future__ import annotations

from pathlib import Path

from grafana_foundation_sdk.cog.encoder import JSONEncoder

from grafana.source import safe_shift, time_spent, usage, which_arm

BUILDERS = (which_arm.build, safe_shift.build, time_spent.build, usage.build)


def texts() -> dict[str, str]:
    """The text of each file, by its name."""
    encoder = JSONEncoder(indent=2, sort_keys=True, ensure_ascii=False)
    found = {}
    for builder in BUILDERS:
        dashboard = builder().build()
        # The SDK counts no panels, and links and repeated panels need stable numbers.
        for number, panel in enumerate(dashboard.panels or [], start=1):
            panel.id_val = number
        found[f"{dashboard.uid}.json"] = encoder.encode(dashboard) + "\n"
    return found


def write(folder: Path) -> None:
    """Write all files into an existing folder."""
    for name, text in texts().items():
        (folder / name).write_text(text)
