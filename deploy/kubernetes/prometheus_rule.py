"""Print deploy/prometheus/rules as a PrometheusRule, the form the Prometheus operator reads."""

from __future__ import annotations

from pathlib import Path

import yaml

RULES = Path(__file__).parents[1] / "prometheus" / "rules"
HEADING = "# Generated from deploy/prometheus/rules by `make manifests`: change them there.\n"


def resource() -> str:
    """Every group of every file, as YAML."""
    files = sorted(RULES.glob("*.yml"))
    groups = [group for file in files for group in yaml.safe_load(file.read_text())["groups"]]
    rule = {
        "apiVersion": "monitoring.coreos.com/v1",
        "kind": "PrometheusRule",
        "metadata": {"name": "ttft-gateway"},
        "spec": {"groups": groups},
    }
    return HEADING + yaml.safe_dump(rule, sort_keys=False, width=1000)


if __name__ == "__main__":
    print(resource(), end="")
