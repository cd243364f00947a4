"""Writes the dashboards: `python -m grafana.source [FOLDER]`, grafana/dashboards by default."""

from __future__ import annotations

import sys
from pathlib import Path

from grafana.source.output import write

if __name__ == "__main__":
    write(Path(sys.argv[1] if len(sys.argv) > 1 else Path(__file__).parents[1] / "dashboards"))
