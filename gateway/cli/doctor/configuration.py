"""The gateway's own file, where it was named: can it be loaded?"""

from __future__ import annotations

from collections.abc import Iterator

from gateway.cli.doctor.case import Case
from gateway.cli.doctor.finding import Finding, Topic
from gateway.errors import ConfigError

TOPIC = Topic("configuration")


def check(case: Case) -> Iterator[Finding]:
    """What the file means is the business of `gateway check`."""
    if case.settings is None:
        yield TOPIC.ok("No file was named with -c: what is looked at is what runs.")
    elif isinstance(case.settings, ConfigError):
        faults = case.settings.faults
        more = f" (and {len(faults) - 1} more)" if len(faults) > 1 else ""
        yield TOPIC.error(
            f"{case.config} has faults: {faults[0]}{more}.",
            "A gateway does not start with it, one that runs keeps its old one, and the file's "
            "keys and backends are not looked at here.",
            f"gateway check {case.config}",
        )
    else:
        yield TOPIC.ok(f"{case.config} has no faults.")
