"""The kinds of panel that the dashboards are made of."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from string import ascii_uppercase

from grafana_foundation_sdk.builders.common import (
    ReduceDataOptions,
    StackingConfig,
    VizLegendOptions,
    VizTooltipOptions,
)
from grafana_foundation_sdk.builders.dashboard import Row
from grafana_foundation_sdk.builders.heatmap import (
    FilterValueRange,
    HeatmapColorOptions,
    YAxisConfig,
)
from grafana_foundation_sdk.builders.heatmap import Panel as Heatmap
from grafana_foundation_sdk.builders.prometheus import Dataquery
from grafana_foundation_sdk.builders.stat import Panel as Stat
from grafana_foundation_sdk.builders.statetimeline import Panel as StateTimeline
from grafana_foundation_sdk.builders.table import Panel as Table
from grafana_foundation_sdk.builders.timeseries import Panel as Timeseries
from grafana_foundation_sdk.models.common import (
    BigValueColorMode,
    GraphDrawStyle,
    LegendDisplayMode,
    LegendPlacement,
    SortOrder,
    StackingMode,
    TooltipDisplayMode,
    VisibilityMode,
)
from grafana_foundation_sdk.models.dashboard import (
    DataTransformerConfig,
    DynamicConfigValue,
    ValueMap,
    ValueMappingResult,
)
from grafana_foundation_sdk.models.heatmap import HeatmapColorMode
from grafana_foundation_sdk.models.prometheus import PromQueryFormat

from grafana.source.style import DATASOURCE, arm_colours, by_name, by_threshold, fixed, steps

Query = tuple[str, str]
"""A PromQL expression and the legend of its series."""

HEIGHT = 8


def row(title: str) -> Row:
    return Row(title)


def lines(
    title: str, description: str, unit: str, *queries: Query, span: int = 8, least: float | None = 0
) -> Timeseries:
    """Lines over time; series named after arms have their colours."""
    panel = (
        Timeseries()
        .title(title)
        .description(description)
        .datasource(DATASOURCE)
        .unit(unit)
        .span(span)
        .height(HEIGHT)
        .color_scheme(by_name())
        .line_width(2)
        .fill_opacity(0)
        .show_points(VisibilityMode.AUTO)
        .legend(
            VizLegendOptions()
            .show_legend(True)
            .display_mode(LegendDisplayMode.LIST)
            .placement(LegendPlacement.BOTTOM)
        )
        .tooltip(VizTooltipOptions().mode(TooltipDisplayMode.MULTI).sort(SortOrder.DESCENDING))
    )
    if least is not None:
        panel = panel.min(least)
    for pattern, properties in arm_colours().items():
        panel = panel.override_by_regexp(pattern, properties)
    for target in _targets(queries):
        panel = panel.with_target(target)
    return panel


def bars(
    title: str, description: str, unit: str, *queries: Query, span: int = 8, stacked: bool = False
) -> Timeseries:
    """Counts for each step of time."""
    panel = lines(title, description, unit, *queries, span=span)
    panel = panel.draw_style(GraphDrawStyle.BARS).fill_opacity(60).line_width(1)
    return panel.stacking(StackingConfig().mode(StackingMode.NORMAL)) if stacked else panel


def parts(title: str, description: str, unit: str, *queries: tuple[str, str, str]) -> Timeseries:
    """Areas on top of each other, repeated for each arm: of each its expression, legend, colour."""
    panel = lines(title, description, unit, *(query[:2] for query in queries), span=24)
    panel = panel.stacking(StackingConfig().mode(StackingMode.NORMAL)).fill_opacity(60)
    panel = panel.repeat("arm").repeat_direction("h").max_per_row(2)
    for _, legend, colour in queries:
        panel = panel.override_by_name(legend, [fixed(colour)])
    return panel


def stat(
    title: str,
    description: str,
    unit: str,
    query: Query,
    *limits: tuple[float, str],
    words: Mapping[str, str] | None = None,
    whole_range: bool = False,
) -> Stat:
    """One figure, green until it reaches the first limit; `words` replace single values.

    Args:
        whole_range: it is about the time range as a whole, so has no history in it.
    """
    texts = {value: ValueMappingResult(text=text) for value, text in (words or {}).items()}
    (target,) = _targets([query])
    return (
        Stat()
        .title(title)
        .description(description)
        .datasource(DATASOURCE)
        .unit(unit)
        .span(6)
        .height(5)
        .mappings([ValueMap(options=texts)] if texts else [])
        .thresholds(steps("green", *limits))
        .color_scheme(by_threshold())
        .color_mode(BigValueColorMode.BACKGROUND)
        .reduce_options(ReduceDataOptions().calcs(["lastNotNull"]))
        .no_value("no data")
        .with_target(target.instant() if whole_range else target)
    )


def heatmap(title: str, description: str, query: Query, *, most: float) -> Heatmap:
    """Histogram buckets over time, repeated for each arm; the colours end at `most`."""
    (target,) = _targets([query])
    return (
        Heatmap()
        .title(title)
        .description(description)
        .datasource(DATASOURCE)
        .span(24)
        .height(10)
        .repeat("arm")
        .repeat_direction("h")
        .max_per_row(2)
        .calculate(False)
        .color(
            HeatmapColorOptions()
            .mode(HeatmapColorMode.SCHEME)
            .scheme("Viridis")
            .steps(64)
            .min(0)
            .max(most)
        )
        .filter_values(FilterValueRange().le(1e-9))
        .y_axis(YAxisConfig().unit("s"))
        .with_target(target.format(PromQueryFormat.HEATMAP))
    )


def states(title: str, description: str, query: Query, words: Mapping[str, str]) -> StateTimeline:
    """What was 1 (green) or 0 (red) when."""
    (target,) = _targets([query])
    texts = {value: ValueMappingResult(text=text) for value, text in words.items()}
    return (
        StateTimeline()
        .title(title)
        .description(description)
        .datasource(DATASOURCE)
        .unit("short")
        .span(8)
        .height(HEIGHT)
        .mappings([ValueMap(options=texts)])
        .thresholds(steps("red", (1, "green")))
        .color_scheme(by_threshold())
        .with_target(target)
    )


def table(
    title: str,
    description: str,
    labels: Mapping[str, str],
    columns: Sequence[tuple[str, str, str]],
    *,
    span: int = 24,
) -> Table:
    """One row for each combination of labels.

    Args:
        labels: heading of each label's column.
        columns: of each its heading, unit and instant query.
    """
    legend = " ".join(f"{{{{{label}}}}}" for label in labels)
    panel = (
        Table()
        .title(title)
        .description(description)
        .datasource(DATASOURCE)
        .unit("short")
        .span(span)
        .height(HEIGHT)
    )
    for target in _targets([(query, legend) for _, _, query in columns]):
        panel = panel.with_target(target.instant().format(PromQueryFormat.TABLE))
    values = [f"Value #{letter}" for letter, _ in zip(ascii_uppercase, columns, strict=False)]
    if len(columns) == 1:
        values = ["Value"]
    headings = dict(zip(values, (heading for heading, _, _ in columns), strict=True))
    panel = panel.with_transformation(DataTransformerConfig("merge", options={}))
    panel = panel.with_transformation(
        DataTransformerConfig(
            "organize",
            options={
                "excludeByName": {"Time": True},
                "indexByName": {name: n for n, name in enumerate([*labels, *values])},
                "renameByName": {**labels, **headings},
            },
        )
    )
    for heading, unit, _ in columns:
        panel = panel.override_by_name(heading, [DynamicConfigValue("unit", unit)])
    return panel


def _targets(queries: Sequence[Query]) -> list[Dataquery]:
    return [
        Dataquery()
        .datasource(DATASOURCE)
        .ref_id(letter)
        .expr(" ".join(expression.split()))
        .legend_format(legend)
        .range()
        for letter, (expression, legend) in zip(ascii_uppercase, queries, strict=False)
    ]
