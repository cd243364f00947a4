"""The scrape configuration and the rules, as promtool judges them, and their worked cases."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.support.prometheus import DEPLOYED, deployed, promtool, rules

CASES = sorted((DEPLOYED / "tests").glob("*.yml"))
RECORDED = [rule["record"] for rule in rules() if "record" in rule]
ALERTS = [rule for rule in rules() if "alert" in rule]


def worked(kind: str) -> list[dict[str, Any]]:
    """All worked cases of a kind: `promql_expr_test` or `alert_rule_test`."""
    tests = [test for file in CASES for test in yaml.safe_load(file.read_text())["tests"]]
    return [case for test in tests for case in test.get(kind, [])]


@pytest.mark.service
def test_the_configuration_is_valid(tmp_path: Path) -> None:
    said = promtool("check", "config", str(deployed(tmp_path) / "prometheus.yml"))
    assert "2 rule files" in said
    assert said.count("SUCCESS") == 4


@pytest.mark.service
def test_no_rule_is_there_twice() -> None:
    files = [str(file) for file in sorted((DEPLOYED / "rules").glob("*.yml"))]
    promtool("check", "rules", "--lint", "all", "--lint-fatal", *files)


@pytest.mark.service
@pytest.mark.parametrize("case", CASES, ids=lambda path: path.stem)
def test_worked_cases_hold(case: Path) -> None:
    assert "SUCCESS" in promtool("test", "rules", str(case))


def test_every_recording_rule_has_a_worked_case() -> None:
    shown = " ".join(case["expr"] for case in worked("promql_expr_test") if case["exp_samples"])
    assert [name for name in RECORDED if name not in shown] == []


def test_every_alert_has_cases_in_which_it_fires_and_does_not() -> None:
    names = {alert["alert"] for alert in ALERTS}
    cases = worked("alert_rule_test")
    fires = Counter(case["alertname"] for case in cases if case["exp_alerts"])
    silent = Counter(case["alertname"] for case in cases if not case["exp_alerts"])
    assert set(fires) == set(silent) == names


def test_recorded_names_say_level_metric_and_operations() -> None:
    pattern = re.compile(r"(gateway|(model|arm|backend|le)(_(model|arm|backend|le))*):\w+:\w+")
    assert [name for name in RECORDED if not pattern.fullmatch(name)] == []
    assert len(set(RECORDED)) == len(RECORDED)


@pytest.mark.parametrize("alert", ALERTS, ids=lambda rule: str(rule["alert"]))
def test_alerts_say_how_urgent_they_are_and_what_to_do(alert: dict[str, Any]) -> None:
    assert alert["labels"]["severity"] in {"page", "warning", "info"}
    assert set(alert["annotations"]) == {"summary", "description"}
    assert alert["for"], "a single bad scrape is no reason to wake anyone"
    docs = (DEPLOYED.parents[1] / "docs" / "dashboards.md").read_text()
    assert f"| `{alert['alert']}` |" in docs


def test_the_gateway_is_one_target_and_engines_are_named_as_the_gateway_names_them() -> None:
    gateway = yaml.safe_load((DEPLOYED / "targets" / "gateway.yml").read_text())
    assert [len(entry["targets"]) for entry in gateway] == [1]
    for entry in yaml.safe_load((DEPLOYED / "targets" / "engines.yml").read_text()):
        assert len(entry["targets"]) == 1
        assert set(entry["labels"]) == {"backend"}
