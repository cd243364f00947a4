"""What is deployed, on a real Prometheus that scrapes a gateway and two simulated engines.

One demo for all tests: traffic warms the caches, Prometheus starts, traffic goes on; then a
backend is out for a while and weights change. So each panel and rule has something to show.
"""

from __future__ import annotations

import asyncio
import re
import secrets
from bisect import bisect_left
from collections.abc import AsyncIterator, Iterator
from contextlib import ExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import msgspec
import pytest
import yaml

from gateway.demo.children import Child
from gateway.demo.plan import CHUNKS, MODEL, Plan
from gateway.demo.tally import Line, nearest_rank
from gateway.demo.traffic import Traffic
from gateway.telemetry.buckets import LATENCY
from tests.support.dashboards import Target, dashboards, filled, targets
from tests.support.prometheus import Prometheus, program, promtool, rules, scraping

pytestmark = [pytest.mark.service, pytest.mark.timeout(150)]

SPEED = 10
WARM, MEASURED, MOVED = 30, 220, 60
EXTRAPOLATED = 0.25
"""By how much an increase reaches beyond its samples: a scrape and a half, of some ten."""

METRICS_KEY = secrets.token_hex(32)
GPU = "DCGM_FI"
TTFT = "gateway_time_to_first_token_seconds"

RULES = [rule for rule in rules() if GPU not in rule["expr"]]


@dataclass
class Watched:
    """A demo that has been scraped.

    Attributes:
        lines: of the access log, those from before the first scrape apart.
        page: the gateway's `/metrics`.
    """

    prometheus: Prometheus
    warm: list[Line]
    measured: list[Line]
    page: str

    def ttft(self, arm: str, *, whole: bool) -> list[float]:
        """Exact times to first token in seconds, ordered; with the warm ones or without."""
        lines = self.warm + self.measured if whole else self.measured
        return sorted(
            (line.first_token_ms - line.body_complete_ms) / 1000
            for line in lines
            if line.arm == arm
            and line.first_token_ms is not None
            and line.body_complete_ms is not None
        )


@pytest.fixture(scope="module")
def watched(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Watched]:
    program("prometheus")
    folder = tmp_path_factory.mktemp("watched")
    with ExitStack() as stack:
        yield asyncio.run(_watch(folder, stack))


async def _watch(folder: Path, stack: ExitStack) -> Watched:
    plan = Plan(SPEED)
    ports = await _start(plan, folder, stack)
    log = folder / "access.jsonl"
    async with _client(plan, ports["gateway"]) as client:
        await _traffic(client, WARM)
        warm = len(await _lines(log))
        prometheus = stack.enter_context(scraping(folder, METRICS_KEY, _targets(ports)))
        prometheus.wait('{__name__="up", job="vllm"} == 1')
        prometheus.wait(f"{TTFT}_count")
        await _oddities(client)
        await _traffic(client, MEASURED)
        await _steer(client, plan)
        prometheus.wait("changes(gateway_arm_weight[1m]) > 0")
        prometheus.wait('ALERTS{alertname="GatewayComparisonConfounded"}')
        headers = {"authorization": f"Bearer {METRICS_KEY}"}
        page = (await client.get("/metrics", headers=headers)).text
    lines = await _lines(log)
    return Watched(prometheus, lines[:warm], lines[warm:], page)


async def _start(plan: Plan, folder: Path, stack: ExitStack) -> dict[str, int]:
    """Two engines and a gateway, each a process; their ports."""

    def spawn(name: str, arguments: list[str], environment: dict[str, str]) -> Child:
        child = Child(name, arguments, folder / f"{name}.log", environment)
        stack.callback(child.stop)
        return child

    key = {"VLLM_API_KEY": plan.engine_key}
    engines = {arm: spawn(arm, plan.engine_arguments(arm), key) for arm in CHUNKS}
    ports = {arm: await engine.port() for arm, engine in engines.items()}
    settings = plan.configuration(ports, str(folder / "gateway.db"))
    settings["server"]["port"] = 0
    settings["metrics"] = {"key": METRICS_KEY}
    # About half of the requests miss it at this speed, so that both results are counted.
    settings["models"][MODEL]["experiment"]["slo_ttft_ms"] = 25
    (folder / "gateway.yaml").write_text(yaml.safe_dump(settings))
    arguments = ["serve", "-c", str(folder / "gateway.yaml")]
    gateway = spawn("gateway", [*arguments, "--access-log", str(folder / "access.jsonl")], {})
    return {**ports, "gateway": await gateway.port()}


def _targets(ports: dict[str, int]) -> dict[str, list[dict[str, Any]]]:
    engines = [
        {"targets": [f"127.0.0.1:{ports[arm]}"], "labels": {"backend": arm}} for arm in CHUNKS
    ]
    return {"gateway": [{"targets": [f"127.0.0.1:{ports['gateway']}"]}], "engines": engines}


@asynccontextmanager
async def _client(plan: Plan, port: int) -> AsyncIterator[httpx.AsyncClient]:
    async with httpx.AsyncClient(
        base_url=f"http://127.0.0.1:{port}",
        headers={"authorization": f"Bearer {plan.key}"},
        timeout=30,
        trust_env=False,
    ) as client:
        yield client


async def _traffic(client: httpx.AsyncClient, number: int) -> None:
    await Traffic(client, concurrency=8, limit=number, seed=number).run()


async def _oddities(client: httpx.AsyncClient) -> None:
    """A rejected request, one without streaming, and a client that leaves before its token."""
    body = {"model": MODEL, "messages": [{"role": "user", "content": "word " * 60_000}]}
    unknown = await client.post("/v1/chat/completions", json={**body, "model": "none-such"})
    assert unknown.status_code == 404
    short = {**body, "messages": [{"role": "user", "content": "Hello"}]}
    assert (await client.post("/v1/chat/completions", json=short)).status_code == 200
    with pytest.raises(httpx.ReadTimeout):
        await client.post(
            "/v1/chat/completions",
            json={**body, "stream": True},
            timeout=httpx.Timeout(5, read=0.1),
        )


async def _steer(client: httpx.AsyncClient, plan: Plan) -> None:
    """Take an arm's backend out and put it back, then shift weights."""
    admin = {"authorization": f"Bearer {plan.admin_key}"}
    first, second = CHUNKS
    for enabled in (False, True):
        path, body = f"/admin/v1/backends/{second}", {"enabled": enabled}
        (await client.put(path, json=body, headers=admin)).raise_for_status()
        if not enabled:
            await _traffic(client, MOVED)
    path = f"/admin/v1/models/{MODEL}"
    revision = (await client.get(path, headers=admin)).json()["revision"]
    change = {"weights": {first: 75, second: 25}, "revision": revision, "reason": "a test"}
    (await client.put(f"{path}/weights", json=change, headers=admin)).raise_for_status()


async def _lines(log: Path) -> list[Line]:
    """The access log, once it has been written."""
    await asyncio.sleep(0.5)
    return [msgspec.json.decode(line, type=Line) for line in log.read_bytes().splitlines()]


def relaxed(expression: str) -> str:
    """An alert's expression with its conditions taken out; its data and joins stay.

    Comparisons give 0 or 1 for every element instead of dropping some, so the result is empty
    only where a metric is missing, or the two sides of a join have no labels in common.
    """
    outside = re.split(r"(\{[^}]*\})", expression)
    compared = r"(==|<=|>=|<|>)"
    outside[::2] = [re.sub(compared, r"\1 bool", part) for part in outside[::2]]
    return "".join(outside).replace(" unless ", " and ").replace("absent(", "count(")


def variables() -> dict[str, str]:
    return {"model": MODEL, "reference": next(iter(CHUNKS))}


def test_the_gateways_page_is_as_prometheus_wants_it(watched: Watched) -> None:
    promtool("check", "metrics", stdin=watched.page)


def test_every_target_is_scraped(watched: Watched) -> None:
    up = {(one.labels["job"], one.labels.get("backend")) for one in watched.prometheus.query("up")}
    assert up == {("ttft-gateway", None), *(("vllm", arm) for arm in CHUNKS)}
    assert all(one.value == 1 for one in watched.prometheus.query("up"))


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: str(rule.get("record", rule.get("alert"))))
def test_every_rule_has_data(watched: Watched, rule: dict[str, Any]) -> None:
    if "record" in rule:
        assert watched.prometheus.query(rule["expr"])
        recorded = watched.prometheus.query(rule["record"])
        assert recorded
        level = rule["record"].split(":")[0]
        names = set() if level == "gateway" else set(level.split("_"))
        assert all(set(one.labels) - {"__name__"} == names for one in recorded)
    else:
        assert watched.prometheus.query(relaxed(rule["expr"]))


@pytest.mark.parametrize("target", list(targets()), ids=str)
def test_every_panel_has_data_with_the_labels_of_its_legend(
    watched: Watched, target: Target
) -> None:
    for arm in CHUNKS if target.repeat else ["|".join(CHUNKS)]:
        chosen = {**variables(), "arm": arm}
        if target.dashboard == "ttft-usage":
            chosen = {"model": ".+", "arm": ".+", "key": ".+"}
        found = watched.prometheus.query(filled(target.expression, **chosen))
        if GPU in target.expression:
            assert found == []
            continue
        assert found
        names = re.findall(r"{{(\w+)}}", target.legend)
        for one in found:
            assert all(one.labels.get(name) for name in names), one.labels
            assert one.value == one.value, "not a number"
        if names == ["arm"] and not target.repeat:
            assert {one.labels["arm"] for one in found} == set(CHUNKS)


def test_changes_of_weights_are_annotations_with_the_new_weight(watched: Watched) -> None:
    for dashboard in dashboards().values():
        (annotation,) = dashboard["annotations"]["list"]
        found = watched.prometheus.query(filled(annotation["expr"], model=MODEL))
        told = {(one.labels["arm"], one.labels["weight"]) for one in found}
        assert told == set(zip(CHUNKS, ("75", "25"), strict=True))


def test_what_happened_for_a_moment_is_in_the_rates(watched: Watched) -> None:
    """Failovers and a client that left, whose counters no earlier event had brought to life."""
    moved = sum(line.arm != line.assigned_arm != "" for line in watched.measured if line.arm)
    assert moved > 0
    told = {"gateway_failovers_total": moved, "gateway_no_first_token_total": 1}
    for name, number in told.items():
        (found,) = watched.prometheus.query(f"sum(increase({name}[5m]))")
        assert found.value == pytest.approx(number, rel=EXTRAPOLATED)


@pytest.mark.parametrize("arm", CHUNKS)
def test_the_parts_of_ttft_add_up_to_its_mean(watched: Watched, arm: str) -> None:
    chosen = [target for target in targets() if target.panel == "Mean TTFT of $arm in parts"]
    assert len(chosen) == 6
    parts = [
        watched.prometheus.query(filled(target.expression, **variables(), arm=arm))[0].value
        for target in chosen
    ]
    sums, counts = (f'rate({TTFT}_{kind}{{arm="{arm}"}}[3m])' for kind in ("sum", "count"))
    (mean,) = watched.prometheus.query(f"sum({sums}) / sum({counts})")
    assert sum(parts) == pytest.approx(mean.value, rel=0.1)


def test_a_confounded_comparison_is_told(watched: Watched) -> None:
    (found,) = watched.prometheus.query("model:gateway_load_per_backend:ratio_max_min")
    assert found.value == pytest.approx(3)
    assert watched.prometheus.query('ALERTS{alertname="GatewayComparisonConfounded"}')


@pytest.mark.parametrize("arm", CHUNKS)
def test_p90_lies_in_the_bucket_of_the_exact_one(watched: Watched, arm: str) -> None:
    buckets = f'sum by (le) ({TTFT}_bucket{{arm="{arm}"}})'
    (found,) = watched.prometheus.query(f"histogram_quantile(0.9, {buckets})")
    times = watched.ttft(arm, whole=True)
    exact, next_one = (times[times.index(nearest_rank(times, 90)) + n] for n in (0, 1))
    # Nine tenths of a round number come out a hair above it, which may be the next request.
    possible = {bisect_left(LATENCY, exact), bisect_left(LATENCY, next_one)}
    assert bisect_left(LATENCY, found.value) in possible


@pytest.mark.parametrize("arm", CHUNKS)
def test_the_recorded_p90_is_within_a_bucket_of_the_exact_one(watched: Watched, arm: str) -> None:
    (found,) = watched.prometheus.query(f'model_arm:{TTFT}:p90_rate5m{{arm="{arm}"}}')
    times = watched.ttft(arm, whole=False)
    exact = nearest_rank(times, 90)
    assert abs(bisect_left(LATENCY, found.value) - bisect_left(LATENCY, exact)) <= 1
    (size,) = watched.prometheus.query(f'model_arm:{TTFT}_count:increase5m{{arm="{arm}"}}')
    assert size.value == pytest.approx(len(times), rel=EXTRAPOLATED)
