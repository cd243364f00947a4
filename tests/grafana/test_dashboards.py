"""The dashboards as they are committed: made from their source, and by Grafana's conventions.

The rules are those of grafana/dashboard-linter; its `.lint` file beside the dashboards names those
that do not apply, with the reason.
"""

from __future__ import annotations

import re
from itertools import combinations
from pathlib import Path
from typing import Any

import pytest
import yaml

from gateway.demo.plan import CHUNKS
from grafana.source.output import texts
from grafana.source.style import ARM_COLOURS
from tests.support.dashboards import FOLDER, Panel, Target, dashboards, filled, panels, targets
from tests.support.prometheus import DEPLOYED, promtool

ALL = dashboards()
EXCLUDED: dict[str, Any] = yaml.safe_load((FOLDER / ".lint").read_text())["exclusions"]
UNITS = {"none", "short", "s", "percent", "percentunit", "reqps", "ops", "mbytes"}

every = pytest.mark.parametrize("dashboard", ALL.values(), ids=list(ALL))
every_panel = pytest.mark.parametrize(
    "panel",
    [panel for one in ALL.values() for panel in panels(one)],
    ids=[f"{uid}: {panel['title']}" for uid, one in ALL.items() for panel in panels(one)],
)
every_target = pytest.mark.parametrize("target", list(targets()), ids=str)


def test_the_committed_files_are_what_their_source_makes() -> None:
    committed = {path.name: path.read_text() for path in FOLDER.glob("*.json")}
    assert committed == texts(), "make dashboards"


def test_there_is_one_dashboard_a_question() -> None:
    assert {one["title"] for one in ALL.values()} == {
        "TTFT: which arm is better?",
        "TTFT: is the shift safe?",
        "TTFT: where does the time go?",
        "TTFT: who uses what?",
    }


@every
def test_variables_choose_datasource_model_and_arm(dashboard: dict[str, Any]) -> None:
    variables = {one["name"]: one for one in dashboard["templating"]["list"]}
    assert {"datasource", "model", "arm"} <= set(variables)
    source = variables.pop("datasource")
    assert (source["type"], source["query"]) == ("datasource", "prometheus")
    assert source["label"] == "Data source"
    for variable in variables.values():
        assert variable["refresh"] == 2, "on a change of the time range"
        assert variable["datasource"]["uid"] == "${datasource}"
        assert variable["label"]
    assert variables["arm"]["multi"]
    assert variables["arm"]["includeAll"]


@every
def test_dashboards_lead_to_each_other(dashboard: dict[str, Any]) -> None:
    (link,) = dashboard["links"]
    assert link["type"] == "dashboards"
    assert link["tags"] == dashboard["tags"] == ["ttft-gateway"]
    assert link["includeVars"]
    assert link["keepTime"]


@every
def test_changes_of_weights_are_annotations(dashboard: dict[str, Any]) -> None:
    (annotation,) = dashboard["annotations"]["list"]
    assert annotation["enable"]
    assert "changes(gateway_arm_weight" in annotation["expr"]
    assert annotation["datasource"]["uid"] == "${datasource}"


@every
def test_dashboards_are_not_edited_in_the_browser(dashboard: dict[str, Any]) -> None:
    assert dashboard["editable"] is False
    assert dashboard["description"]


@every
def test_panels_lie_beside_each_other(dashboard: dict[str, Any]) -> None:
    places = [panel["gridPos"] for panel in dashboard["panels"]]
    assert all(place["x"] + place["w"] <= 24 for place in places)
    for one, other in combinations(places, 2):
        apart = one["x"] + one["w"] <= other["x"] or other["x"] + other["w"] <= one["x"]
        above = one["y"] + one["h"] <= other["y"] or other["y"] + other["h"] <= one["y"]
        assert apart or above, (one, other)
    assert len({panel["id"] for panel in dashboard["panels"]}) == len(places)


@every_panel
def test_panels_are_titled_described_and_have_units(panel: Panel) -> None:
    assert panel["title"]
    if panel["type"] == "text":
        return
    assert panel["description"].endswith(".")
    if panel["type"] == "heatmap":
        assert panel["options"]["yAxis"]["unit"] == "s"
        return
    properties = [
        found["value"]
        for override in panel["fieldConfig"]["overrides"]
        for found in override["properties"]
        if found["id"] == "unit"
    ]
    assert {panel["fieldConfig"]["defaults"]["unit"], *properties} <= UNITS
    if re.search(r"TTFT P\d\d|latency|time$", panel["title"]):
        assert panel["fieldConfig"]["defaults"]["unit"] == "s"


@every_panel
def test_panels_and_their_queries_use_the_chosen_datasource(panel: Panel) -> None:
    if panel["type"] == "text":
        return
    for place in (panel, *panel["targets"]):
        assert place["datasource"] == {"type": "prometheus", "uid": "${datasource}"}


@every_panel
def test_an_arm_has_its_colour_wherever_it_is_drawn(panel: Panel) -> None:
    if panel["type"] != "timeseries":
        return
    assert panel["fieldConfig"]["defaults"]["color"]["mode"] == "palette-classic-by-name"
    patterns = {
        override["matcher"]["options"]: override["properties"][0]["value"]["fixedColor"]
        for override in panel["fieldConfig"]["overrides"]
        if override["matcher"]["id"] == "byRegexp"
    }
    assert patterns == {f"/^{arm}( .*)?$/": colour for arm, colour in ARM_COLOURS.items()}


def test_the_demos_arms_differ_in_colour() -> None:
    assert len({ARM_COLOURS[arm] for arm in CHUNKS}) == len(CHUNKS)
    assert len({ARM_COLOURS[arm] for arm in ("control", "baseline", "canary")}) == 3


def test_heatmaps_of_all_arms_have_the_same_scales() -> None:
    (found,) = (one for one in panels(ALL["ttft-which-arm"]) if one["type"] == "heatmap")
    assert found["repeat"] == "arm"
    # One panel, repeated: what is fixed in it is the same for all arms.
    assert found["options"]["calculate"] is False
    assert (found["options"]["color"]["min"], found["options"]["color"]["max"]) == (0, 0.25)


def test_quantiles_stand_beside_the_sample_sizes_they_rest_on() -> None:
    of = {one["title"]: one for one in panels(ALL["ttft-which-arm"])}
    renamed = of["Over the whole time range"]["transformations"][1]["options"]["renameByName"]
    assert {"Requests", "P50", "P90", "P99"} < set(renamed.values())
    for title in ("TTFT P50", "TTFT P90", "TTFT P99"):
        assert "Sample size" in of[title]["description"]
    assert "_count{" in of["Sample size"]["targets"][0]["expr"]


@every_target
def test_windows_follow_the_scrape_interval(target: Target) -> None:
    allowed = {"[$__rate_interval]"}
    entries = EXCLUDED["target-rate-interval-rule"]["entries"]
    if target.panel in {entry["panel"] for entry in entries}:
        allowed = {"[$__range]"}
    assert set(re.findall(r"\[[^\]]*\]", target.expression)) <= allowed


@every_target
def test_counters_are_read_as_rates(target: Target) -> None:
    counters = re.findall(r"(\w+)\((?:\w+:)?\w+_total\b", target.expression)
    assert set(counters) <= {"rate", "increase"}
    assert len(counters) == len(re.findall(r"_total\b", target.expression))


@every_target
def test_buckets_are_read_as_quantiles_or_heatmaps(target: Target) -> None:
    if "_bucket" in target.expression and target.legend != "{{le}}":
        assert target.expression.count("histogram_quantile(") == target.expression.count("_bucket")


@pytest.mark.service
def test_every_query_is_valid(tmp_path: Path) -> None:
    expressions = [filled(target.expression, model="m", arm="a", key="k") for target in targets()]
    rules = [{"record": f"x:y:q{n}", "expr": one} for n, one in enumerate(expressions)]
    file = tmp_path / "queries.yml"
    file.write_text(yaml.safe_dump({"groups": [{"name": "queries", "rules": rules}]}))
    assert f"{len(rules)} rules found" in promtool("check", "rules", str(file))


def test_rules_that_do_not_apply_have_a_reason() -> None:
    assert all(rule["reason"] for rule in EXCLUDED.values())
    titles = {target.panel for target in targets()}
    for rule in EXCLUDED.values():
        assert {entry["panel"] for entry in rule.get("entries", [])} <= titles


def test_provisioning_knows_the_scrape_interval() -> None:
    provisioning = FOLDER.parent / "provisioning"
    sources = yaml.safe_load((provisioning / "datasources" / "prometheus.yml").read_text())
    scrapes = yaml.safe_load((DEPLOYED / "prometheus.yml").read_text())
    (source,) = sources["datasources"]
    assert source["jsonData"]["timeInterval"] == scrapes["global"]["scrape_interval"]
    assert source["jsonData"]["manageAlerts"] is False
    (provider,) = yaml.safe_load((provisioning / "dashboards" / "ttft-gateway.yml").read_text())[
        "providers"
    ]
    assert provider["allowUiUpdates"] is False
