"""Chunk settings an engine tells: verified against those declared, and judged."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from gateway.cli.doctor.finding import Finding, Severity
from gateway.vllm import server_info
from tests.cli.doctor.cases import case, found, gateway_yaml, one, other, reply
from tests.cli.doctor.test_ttft import FINE, RUNS, page
from tests.simulator.running import serving
from tests.support.ports import nobody
from tests.support.running import ADMIN_KEY, configuration, running
from tests.support.site import until


def told(**changes: Any) -> dict[str, Any]:
    """What vLLM 0.32 says in its development mode, as far as it is read."""
    values = {"max_num_batched_tokens": 512, "max_num_seqs": 128, **changes}
    return {"vllm_config": {"scheduler_config": values}, "vllm_env": {"A_KEY": "x"}}


async def judged(
    home: Path, tmp_path: Path, info: Any, declared: dict[str, Any] | None, **metrics: Any
) -> list[Finding]:
    answers = {"/metrics": page(**metrics), server_info.PATH: reply(json.dumps(info))}
    async with other(answers) as engine:
        backends = {"b0": {"url": engine.url, "engine": declared}}
        file = gateway_yaml(tmp_path, engine.url, backends=backends)
        with nobody() as gone:
            return await found(case(gone, home, config=file), "ttft")


async def test_what_the_engine_runs_with_is_verified(home: Path, tmp_path: Path) -> None:
    finding = one(await judged(home, tmp_path, told(), FINE))
    assert finding.severity is Severity.OK
    assert finding.seen.endswith("chunk settings as the engine says.")


async def test_nothing_declared_is_no_gap_where_the_engine_tells(
    home: Path, tmp_path: Path
) -> None:
    assert one(await judged(home, tmp_path, told(), None)).severity is Severity.OK


async def test_another_configuration_than_declared_is_an_error(home: Path, tmp_path: Path) -> None:
    finding = one(await judged(home, tmp_path, told(max_num_batched_tokens=2048), FINE))
    assert finding.severity is Severity.ERROR
    assert finding.seen == ("b0: max_num_batched_tokens is declared as 512, the engine runs 2048.")
    assert finding.fix.startswith("engine: {max_num_batched_tokens: 2048}   # under backends.b0")


async def test_another_version_than_declared_is_an_error(home: Path, tmp_path: Path) -> None:
    """As the running gateway has learnt it, which compares it by the same rule."""
    async with serving(**RUNS) as server:
        settings = configuration(tmp_path, server.url)
        settings["backends"]["b0"]["engine"] = {**FINE, "version": "0.31"}
        async with running(settings, tmp_path) as it:
            backend = it.gateway.context.table.backends["b0"]
            await until(lambda: backend.facts)
            assert backend.facts is not None
            version = backend.facts.version
            finding = one(await found(case(it.url, home, given_admin_key=ADMIN_KEY), "ttft"))
    assert finding.severity is Severity.ERROR
    assert finding.seen == f"b0: version is declared as 0.31, the engine runs {version}."


async def test_what_it_runs_with_is_judged_not_what_was_declared(
    home: Path, tmp_path: Path
) -> None:
    findings = await judged(
        home, tmp_path, told(max_num_batched_tokens=64, max_num_seqs=32), {"max_num_seqs": 32}
    )
    assert "max_num_batched_tokens (as the engine says): 64 is below 128" in one(findings).seen


async def test_what_is_known_of_old_engines_is_found(home: Path, tmp_path: Path) -> None:
    """By the checks of `gateway check --engine`, for the version that is declared."""
    declared = {"version": "0.6.3", "block_size": 16, "prefix_caching": True}
    findings = await judged(home, tmp_path, told(max_num_batched_tokens=500), declared)
    finding = one(findings)
    assert finding.severity is Severity.ERROR
    assert "(as the engine says): 500 is no multiple of block_size (16)" in finding.seen
    assert finding.why.startswith("Holds for V0 of 0.6; source: vllm/core/scheduler.py")
    assert finding.fix.startswith("--max-num-batched-tokens 512 ")


async def test_memory_is_judged_by_what_is_declared(home: Path, tmp_path: Path) -> None:
    finding = one(await judged(home, tmp_path, {}, {**FINE, "gpu_memory_utilization": 0.97}))
    assert finding.severity is Severity.WARNING
    assert "b0: gpu_memory_utilization (as declared): 0.97 is above 0.95" in finding.seen
    assert finding.fix == "# where the engine is started: gpu_memory_utilization, 0.9"


async def test_what_no_engine_can_run_with_is_not_told(home: Path, tmp_path: Path) -> None:
    info = told(max_num_batched_tokens=0)
    assert "chunk settings as declared" in one(await judged(home, tmp_path, info, FINE)).seen


async def test_caching_off_is_one_finding_whoever_tells(home: Path, tmp_path: Path) -> None:
    """The gateway has learnt it from the engine's metrics, which say so here, too."""
    async with serving(prefix_caching=False, **RUNS) as server:
        settings = configuration(tmp_path, server.url)
        settings["backends"]["b0"]["engine"] = FINE
        async with running(settings, tmp_path) as it:
            await until(lambda: it.gateway.context.table.backends["b0"].facts)
            findings = await found(case(it.url, home, given_admin_key=ADMIN_KEY), "ttft")
    assert one(findings).seen == "b0: prefix caching is off, as the engine says."


@pytest.mark.parametrize(
    "info", [[], {}, {"vllm_config": "VllmConfig(…)"}, {"vllm_config": {"scheduler_config": None}}]
)
async def test_what_is_not_understood_is_as_declared(
    home: Path, tmp_path: Path, info: object
) -> None:
    assert "chunk settings as declared" in one(await judged(home, tmp_path, info, FINE)).seen
