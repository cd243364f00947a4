"""Readiness: a gateway on its way out, and models without a server."""

from __future__ import annotations

from pathlib import Path

import pytest

from gateway.cli.doctor.finding import Severity
from tests.cli.doctor.cases import about, case, found, one, other, reply
from tests.simulator.running import serving
from tests.support.running import ADMIN_KEY, Running, configuration, running
from tests.support.site import until


async def test_it_is_ready_and_then_drains(home: Path, tmp_path: Path) -> None:
    async with serving() as engine, running(configuration(tmp_path, engine.url), tmp_path) as it:
        ready = one(await found(case(it.url, home), "readiness"))
        it.gateway.drain()
        draining = one(await found(case(it.url, home), "readiness"))
    assert ready.severity is Severity.OK
    assert draining.severity is Severity.ERROR and "is shutting down" in draining.seen
    assert draining.fix.startswith("gateway serve -c gateway.yaml")


@pytest.mark.parametrize(
    ("down", "severity", "seen"),
    [
        (["b0"], "warning", "No server of model m, arm a0, takes requests."),
        (["b0", "b1"], "error", "No server of model m takes requests."),
    ],
)
async def test_arms_without_a_server(
    home: Path, tmp_path: Path, down: list[str], severity: str, seen: str
) -> None:
    async with serving() as engine:
        settings = configuration(tmp_path, engine.url, engine.url)
        async with running(settings, tmp_path) as it:
            for name in down:
                it.gateway.context.table.backends[name].enabled = False
            finding = one(await found(case(it.url, home), "readiness"))
    assert (finding.severity, finding.seen) == (severity, seen)
    assert finding.fix == "gateway backends"


async def learnt(it: Running, name: str) -> None:
    """Wait until the gateway knows what a backend's engine serves."""
    await until(lambda: it.gateway.context.table.backends[name].facts)


async def test_an_arm_whose_only_engine_lacks_its_model(home: Path, tmp_path: Path) -> None:
    async with serving() as engine, serving(model="other") as wrong:
        settings = configuration(tmp_path, engine.url, wrong.url)
        async with running(settings, tmp_path) as it:
            await learnt(it, "b1")
            finding = one(await found(case(it.url, home), "readiness"))
    assert finding.severity is Severity.WARNING
    assert finding.seen == "No server of model m, arm a1, serves the model it is asked for."


async def test_a_model_that_no_engine_serves_is_one_error(home: Path, tmp_path: Path) -> None:
    async with serving() as engine, serving(model="other") as wrong:
        settings = configuration(tmp_path, engine.url, wrong.url)
        async with running(settings, tmp_path) as it:
            await learnt(it, "b1")
            it.gateway.context.table.backends["b0"].enabled = False
            the = case(it.url, home, given_admin_key=ADMIN_KEY)
            findings = await found(the, "readiness", "credentials", "reply", "ttft")
    (error,) = [finding for finding in findings if finding.severity is Severity.ERROR]
    assert error.seen == "No server of model m takes requests and serves the model it is asked for."
    assert about(findings, "b1 serves no model m but other").severity is Severity.WARNING


async def test_no_server_left_is_one_error_and_not_three(home: Path, tmp_path: Path) -> None:
    async with serving() as engine, running(configuration(tmp_path, engine.url), tmp_path) as it:
        for _ in range(5):
            it.gateway.context.table.backends["b0"].circuit.failure()
        the = case(it.url, home, given_admin_key=ADMIN_KEY)
        findings = await found(the, "readiness", "credentials", "reply", "ttft")
    assert [f.topic for f in findings if f.severity is Severity.ERROR] == ["readiness"]
    assert about(findings, "b0 takes no requests now").severity is Severity.WARNING
    assert about(findings, "POST /v1/chat/completions").severity is Severity.WARNING


@pytest.mark.parametrize("body", ["<html>", "{}", '{"status": "ready"}'])
async def test_what_tells_nothing(home: Path, body: str) -> None:
    async with other({"/": reply("{}"), "/ready": reply(body)}) as server:
        finding = one(await found(case(server.url, home), "readiness"))
    assert finding.severity is Severity.WARNING and "/ready tells nothing" in finding.seen
