"""How panels look: the datasource, an arm's colour, units, thresholds."""

from __future__ import annotations

from grafana_foundation_sdk.builders.dashboard import FieldColor, ThresholdsConfig
from grafana_foundation_sdk.models.common import DataSourceRef
from grafana_foundation_sdk.models.dashboard import (
    DynamicConfigValue,
    FieldColorModeId,
    Threshold,
    ThresholdsMode,
)

DATASOURCE = DataSourceRef(type_val="prometheus", uid="${datasource}")

ARM_COLOURS = {
    "control": "blue",
    "baseline": "light-blue",
    "canary": "orange",
    "chunk-64": "orange",
    "chunk-128": "red",
    "chunk-256": "yellow",
    "chunk-512": "blue",
    "chunk-1024": "green",
    "chunk-2048": "purple",
    "chunk-4096": "light-green",
    "chunk-8192": "light-purple",
}
"""An arm has its colour on every panel. Give your own arms theirs here and run `make dashboards`;
other names get theirs from Grafana's palette by name, which is as steady but may repeat one."""


def fixed(colour: str) -> DynamicConfigValue:
    return DynamicConfigValue("color", {"mode": "fixed", "fixedColor": colour})


def arm_colours() -> dict[str, list[DynamicConfigValue]]:
    """Overrides by a pattern of the series' names: the arm's own, or that and a word more."""
    return {f"/^{arm}( .*)?$/": [fixed(colour)] for arm, colour in ARM_COLOURS.items()}


def by_name() -> FieldColor:
    return FieldColor().mode(FieldColorModeId.PALETTE_CLASSIC_BY_NAME)


def by_threshold() -> FieldColor:
    return FieldColor().mode(FieldColorModeId.THRESHOLDS)


def steps(base: str, *others: tuple[float, str]) -> ThresholdsConfig:
    """Colours from values: `base` below the first of the others."""
    found = [Threshold(None, base), *(Threshold(value, colour) for value, colour in others)]
    return ThresholdsConfig().mode(ThresholdsMode.ABSOLUTE).steps(found)


def dashed(kind: str) -> DynamicConfigValue:
    """A line in `dash` or `dot`, to tell percentiles of the same arm apart."""
    pattern = {"dash": [10, 6], "dot": [2, 6]}[kind]
    return DynamicConfigValue("custom.lineStyle", {"fill": kind, "dash": pattern})
