"""For all tests: outside programs and services, and the option that lets none be left out.

Such a test carries the marker `service` and skips, saying what is missing, where that is not
there. `--strict-services` turns every skip into a failure, so that a run in which nothing failed
is one in which everything ran.
"""

from __future__ import annotations

from collections.abc import Generator

import pytest
from hypothesis import settings

# A deadline for each example would judge how busy the machine is, not the code.
settings.register_profile("unhurried", parent=settings(), deadline=None)
settings.load_profile("unhurried")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--strict-services",
        action="store_true",
        help="fail where a test would be skipped, as when a program or service is missing",
    )


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    if report.skipped and not hasattr(report, "wasxfail"):
        _judge(item.config, report)
    return report


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report(
    collector: pytest.Collector,
) -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
    report = yield
    if report.skipped:
        _judge(collector.config, report)
    return report


def _judge(config: pytest.Config, report: pytest.TestReport | pytest.CollectReport) -> None:
    if config.getoption("--strict-services"):
        reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else report.longrepr
        report.outcome = "failed"
        report.longrepr = f"--strict-services allows no skip. {reason}"
