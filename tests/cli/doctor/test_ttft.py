"""Late first tokens: each backend as the admin API, the file and the engine itself tell it."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from gateway.cli.doctor.case import Case
from gateway.cli.doctor.finding import Finding, Severity
from gateway.vllm.page import read_page
from tests.cli.doctor.cases import about, case, found, gateway_yaml, one, other, reply
from tests.simulator.running import Server, serving
from tests.support.ports import nobody
from tests.support.running import ADMIN_KEY, Running, configuration, running
from tests.support.site import until

RUNS: dict[str, Any] = {"max_num_batched_tokens": 512, "max_num_seqs": 128}
FINE = {**RUNS, "prefix_caching": True}


@asynccontextmanager
async def engine_and_gateway(
    tmp_path: Path, declared: dict[str, Any] | None, **engine: Any
) -> AsyncIterator[tuple[Server, Running]]:
    async with serving(**RUNS | engine) as server:
        settings = configuration(tmp_path, server.url)
        if declared is not None:
            settings["backends"]["b0"]["engine"] = declared
        async with running(settings, tmp_path) as it:
            await until(lambda: it.gateway.context.table.backends["b0"].facts)
            yield server, it


async def ttft(home: Path, it: Running, **changes: Any) -> list[Finding]:
    return await found(case(it.url, home, given_admin_key=ADMIN_KEY, **changes), "ttft")


def page(**values: float | str) -> bytes:
    """A metrics page; `caching` and `block_size` are labels."""
    caching, block = values.pop("caching", "True"), values.pop("block_size", "")
    labels = f'enable_prefix_caching="{caching}",block_size="{block}"'
    lines = [f"vllm:cache_config_info{{{labels}}} 1"]
    lines += [f'vllm:{name}{{model_name="m",engine="0"}} {v}' for name, v in values.items()]
    return reply("\n".join(lines) + "\n", content_type="text/plain")


async def measured(home: Path, tmp_path: Path, metrics: bytes) -> list[Finding]:
    """What is found of an engine with this metrics page, named by a file."""
    async with other({"/metrics": metrics}) as engine:
        backends = {"b0": {"url": engine.url, "engine": FINE}}
        file = gateway_yaml(tmp_path, engine.url, backends=backends)
        with nobody() as gone:
            return await found(case(gone, home, config=file), "ttft")


async def test_all_is_well(home: Path, tmp_path: Path) -> None:
    async with engine_and_gateway(tmp_path, FINE) as (_, it):
        backend = it.gateway.context.table.backends["b0"]
        # Its token budget is what an engine tells last.
        await until(lambda: backend.facts and backend.facts.max_num_batched_tokens)
        finding = one(await ttft(home, it))
    assert finding.severity is Severity.OK
    assert finding.seen == (
        "b0: cache and memory are fine since its start, chunk settings as the engine says."
    )


async def test_nobody_to_ask(home: Path, tmp_path: Path) -> None:
    async with engine_and_gateway(tmp_path, FINE) as (_, it):
        none = one(await found(case(it.url, home), "ttft"))
        wrong = one(await found(case(it.url, home, given_admin_key="sk-nope-0123456789"), "ttft"))
        broken = one(await found(case(it.url, home, given_admin_key="a\nb"), "ttft"))
    assert none.severity is Severity.WARNING and "There is no admin key" in none.seen
    assert none.fix.startswith("export GATEWAY_ADMIN_KEY=")
    assert "not know this admin key, which --admin-key gave" in wrong.seen
    assert "sk-nope-0" not in str(wrong)
    assert "which --admin-key gave, holds characters no key has" in broken.seen


@pytest.mark.parametrize(
    ("declared", "seen", "severity"),
    [
        (None, "its chunk size is not stated", "warning"),
        (
            {**FINE, "max_num_batched_tokens": 64, "max_num_seqs": 32},
            "max_num_batched_tokens (as declared): 64 is below 128, so a prompt",
            "warning",
        ),
        (
            {**FINE, "max_num_batched_tokens": 256, "max_num_seqs": 300},
            "below max_num_seqs (300)",
            "error",
        ),
        (
            {**FINE, "max_num_batched_tokens": 8192},
            "not below max_model_len (4096)",
            "warning",
        ),
        ({**FINE, "prefix_caching": False}, "prefix caching is declared off", "error"),
    ],
)
async def test_chunk_settings_as_declared(
    home: Path, tmp_path: Path, declared: dict[str, Any] | None, seen: str, severity: str
) -> None:
    """Of an engine that is not in its development mode."""
    answers = {
        "/health": reply(""),
        "/version": reply('{"version": "0.32.0"}'),
        "/v1/models": reply('{"data": [{"id": "m", "max_model_len": 4096}]}'),
        "/metrics": page(caching=""),
    }
    async with other(answers) as engine:
        settings = configuration(tmp_path, engine.url)
        settings["backends"]["b0"]["engine"] = declared
        async with running(settings, tmp_path) as it:
            await until(lambda: it.gateway.context.table.backends["b0"].facts)
            finding = one(await ttft(home, it))
    assert seen in finding.seen and finding.severity == severity
    assert finding.why and finding.fix


async def test_prefix_caching_off_in_the_engine_alone(home: Path, tmp_path: Path) -> None:
    async with engine_and_gateway(tmp_path, FINE, prefix_caching=False) as (_, it):
        finding = one(await ttft(home, it))
    assert finding.severity is Severity.ERROR
    assert finding.seen == "b0: prefix caching is off, as the engine says."
    assert finding.fix.startswith("--enable-prefix-caching")


async def test_an_engine_that_lacks_its_model_is_told_without_the_file(
    home: Path, tmp_path: Path
) -> None:
    """The gateway knows by itself."""
    async with serving(model="other", **RUNS) as server:
        settings = configuration(tmp_path, server.url)
        settings["backends"]["b0"]["engine"] = FINE
        async with running(settings, tmp_path) as it:
            await until(lambda: it.gateway.context.table.backends["b0"].facts)
            finding = one(await ttft(home, it))
    assert finding.severity is Severity.ERROR
    assert finding.seen == "b0 serves no model m but other."
    assert "go to other servers of the model" in finding.why
    assert finding.fix.startswith("--served-model-name m ")


async def test_a_cache_that_does_not_fit_the_traffic(home: Path, tmp_path: Path) -> None:
    """Prompts that share nothing, sent through the gateway."""
    async with engine_and_gateway(tmp_path, FINE) as (engine, it):
        for number in range(20):
            text = " ".join(f"word{number}{place}" for place in range(500))
            body = {"model": "m", "max_tokens": 1, "messages": [{"role": "user", "content": text}]}
            assert (await it.client.post("/v1/chat/completions", json=body)).status_code == 200
        assert await engine.metric("vllm:prefix_cache_queries_total") > 10_000
        finding = one(await ttft(home, it))
    assert finding.severity is Severity.WARNING
    assert "b0: 0 % of prompt tokens were found in the prefix cache" in finding.seen


@pytest.mark.parametrize(
    ("metrics", "seen"),
    [
        (
            {"prefix_cache_queries_total": 20_000, "prefix_cache_hits_total": 15_800},
            "79 % of prompt tokens",
        ),
        ({"kv_cache_usage_perc": 0.97}, "97 % of the KV cache is in use"),
        ({"gpu_cache_usage_perc": 0.96}, "96 % of the KV cache is in use"),
        ({"gpu_prefix_cache_hit_rate": 0.5}, "50 % of prompt tokens"),
        (
            {"num_preemptions_total": 12, "request_success_total": 400},
            "12 preemptions in 400 requests",
        ),
    ],
)
async def test_what_an_engine_says_of_itself(
    home: Path, tmp_path: Path, metrics: dict[str, float], seen: str
) -> None:
    finding = one(await measured(home, tmp_path, page(**metrics)))
    assert finding.severity is Severity.WARNING and seen in finding.seen
    assert finding.why and finding.fix


@pytest.mark.parametrize(
    "metrics",
    [
        {"prefix_cache_queries_total": 20_000, "prefix_cache_hits_total": 16_000},
        {"prefix_cache_queries_total": 9_999, "prefix_cache_hits_total": 0},
        {
            "prefix_cache_queries_total": 20_000,
            "prefix_cache_hits_total": 0,
            "request_success_total": 19,
        },
        {"prefix_cache_queries_total": 0, "prefix_cache_hits_total": 0},
        {"kv_cache_usage_perc": 0.95, "num_preemptions_total": 0},
        {"gpu_prefix_cache_hit_rate": -1},
    ],
)
async def test_what_is_no_fault(home: Path, tmp_path: Path, metrics: dict[str, float]) -> None:
    assert one(await measured(home, tmp_path, page(**metrics))).severity is Severity.OK


@pytest.mark.parametrize(
    ("metrics", "what"),
    [
        (reply("{}", "404 Not Found"), "HTTP 404"),
        (reply("process_cpu_seconds_total 1\n"), "no vLLM metrics"),
        (reply("<html>\n"), "no vLLM metrics"),
    ],
)
async def test_metrics_that_cannot_be_read(
    home: Path, tmp_path: Path, metrics: bytes, what: str
) -> None:
    finding = one(await measured(home, tmp_path, metrics))
    assert finding.severity is Severity.WARNING
    assert "could not be read from here" in finding.seen and what in finding.seen


async def test_an_engine_that_is_down_does_not_hide_the_others(home: Path, tmp_path: Path) -> None:
    with nobody() as gone:
        async with serving(prefix_caching=False) as engine:
            settings = configuration(tmp_path, gone, engine.url)
            async with running(settings, tmp_path) as it:
                table = it.gateway.context.table
                table.backends["b0"].up = False
                findings = await ttft(home, it)
    assert about(findings, "b0 takes no requests now").severity is Severity.ERROR
    assert about(findings, "b0: its metrics").severity is Severity.WARNING
    assert about(findings, "b1: prefix caching is off").severity is Severity.ERROR


async def test_a_backend_that_was_taken_out(home: Path, tmp_path: Path) -> None:
    async with engine_and_gateway(tmp_path, FINE) as (_, it):
        it.gateway.context.table.backends["b0"].enabled = False
        finding = one(await ttft(home, it))
    assert finding.fix == "gateway backends in b0"


async def test_a_faulty_file_is_a_finding(home: Path, tmp_path: Path) -> None:
    file = tmp_path / "gateway.yaml"
    file.write_text("models: {}\nnonsense: 1\n")
    the: Case = case("http://127.0.0.1:1", home, config=file)
    finding = one(await found(the, "configuration"))
    assert finding.severity is Severity.ERROR
    assert f"{file} has faults: models" in finding.seen and "more)" in finding.seen
    assert finding.fix == f"gateway check {file}"


def test_several_engines_of_one_server_count_together() -> None:
    text = "".join(
        f'vllm:{name}{{engine="{engine}"}} {value}\n'
        for engine, values in (("0", (100, 50, 0.2)), ("1", (300, 250, 0.9)))
        for name, value in zip(
            ("prefix_cache_queries_total", "prefix_cache_hits_total", "kv_cache_usage_perc"),
            values,
            strict=True,
        )
    )
    state = read_page(text)
    assert state is not None
    assert (state.queried, state.hit_rate, state.kv_usage) == (400, 0.75, 0.9)
    assert state.cache.prefix_caching is None


@pytest.mark.parametrize(
    ("served", "upstream", "seen"),
    [
        ("other", None, "b0 serves no model m but other."),
        ("other", "other", ""),
        ("m", None, ""),
    ],
)
async def test_an_engine_that_calls_the_model_by_another_name(
    home: Path, tmp_path: Path, served: str, upstream: str | None, seen: str
) -> None:
    ids = reply(f'{{"object": "list", "data": [{{"id": "{served}"}}]}}')
    async with other({"/metrics": page(), "/v1/models": ids}) as engine:
        arms = {"a": {"weight": 1, "backends": ["b0"]}}
        file = gateway_yaml(
            tmp_path,
            engine.url,
            models={"m": {"arms": arms, "upstream_model": upstream}},
            backends={"b0": {"url": engine.url, "engine": FINE}},
        )
        with nobody() as gone:
            finding = one(await found(case(gone, home, config=file), "ttft"))
    if not seen:
        assert finding.severity is Severity.OK
        return
    assert finding.severity is Severity.ERROR and finding.seen == seen
    assert finding.fix.startswith("--served-model-name m ")
