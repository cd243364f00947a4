"""What all dashboards share: variables, links to each other, and the weights' annotations."""

from __future__ import annotations

from grafana_foundation_sdk.builders.dashboard import (
    AnnotationQuery,
    Dashboard,
    DashboardLink,
    DatasourceVariable,
    QueryVariable,
)
from grafana_foundation_sdk.models.dashboard import (
    DashboardCursorSync,
    DashboardLinkType,
    VariableOption,
    VariableRefresh,
    VariableSort,
)

from grafana.source.style import DATASOURCE

TAG = "ttft-gateway"

# `changes` looks back as far as the step, so that each change is marked once; count_values puts
# the new weight into a label, since an annotation's text can name labels only.
WEIGHT_CHANGES = (
    'count_values by (model, arm) ("weight", gateway_arm_weight{model=~"$model"}'
    ' and changes(gateway_arm_weight{model=~"$model"}[1m]) > 0)'
)


def frame(uid: str, title: str, description: str) -> Dashboard:
    """A dashboard without panels, with the variables `datasource`, `model` and `arm`."""
    return (
        Dashboard(title)
        .uid(uid)
        .description(description)
        .tags([TAG])
        .readonly()
        .refresh("30s")
        .time("now-1h", "now")
        .timezone("browser")
        .tooltip(DashboardCursorSync.CROSSHAIR)
        .with_variable(_datasource())
        .link(
            DashboardLink("TTFT Gateway")
            .type(DashboardLinkType.DASHBOARDS)
            .tags([TAG])
            .keep_time(True)
            .include_vars(True)
        )
        .annotation(
            AnnotationQuery()
            .name("Weight changes")
            .datasource(DATASOURCE)
            .enable(True)
            .icon_color("purple")
            .expr(WEIGHT_CHANGES)
            .step("60s")
            .title_format("{{model}}: weights changed")
            .text_format("{{arm}} has weight {{weight}}")
        )
    )


def compared(uid: str, title: str, description: str) -> Dashboard:
    """A dashboard about the arms of one model."""
    return (
        frame(uid, title, description)
        .with_variable(_labels("model", "Model", "label_values(gateway_arm_weight, model)"))
        .with_variable(
            _all(
                _labels("arm", "Arm", 'label_values(gateway_arm_weight{model="$model"}, arm)'),
            )
        )
    )


def everything(uid: str, title: str, description: str) -> Dashboard:
    """A dashboard about all models, and about requests for none of them."""
    requests = "gateway_requests_total"
    arms = f'label_values({requests}{{model=~"$model"}}, arm)'
    return (
        frame(uid, title, description)
        .with_variable(_all(_labels("model", "Model", f"label_values({requests}, model)")))
        .with_variable(_all(_labels("arm", "Arm", arms)))
    )


def keys() -> QueryVariable:
    """The keys that have asked for the chosen models, by their names."""
    requests = 'gateway_key_requests_total{model=~"$model"}'
    return _all(_labels("key", "Key", f"label_values({requests}, key)"))


def reference() -> QueryVariable:
    """The arm that the others are compared with."""
    query = 'label_values(gateway_arm_weight{model="$model"}, arm)'
    return _labels("reference", "Compared with", query)


def _datasource() -> DatasourceVariable:
    return DatasourceVariable("datasource").label("Data source").type("prometheus")


def _labels(name: str, label: str, query: str) -> QueryVariable:
    return (
        QueryVariable(name)
        .label(label)
        .datasource(DATASOURCE)
        .query(query)
        .refresh(VariableRefresh.ON_TIME_RANGE_CHANGED)
        .sort(VariableSort.ALPHABETICAL_ASC)
    )


def _all(variable: QueryVariable) -> QueryVariable:
    chosen = VariableOption(selected=True, text=["All"], value=["$__all"])
    return variable.multi(True).include_all(True).current(chosen)
