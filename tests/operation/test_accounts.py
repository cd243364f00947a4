"""What a running gateway tells of its traffic, against the traffic: `/metrics` and the log."""

from __future__ import annotations

import asyncio
import secrets
import time
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from dataclasses import dataclass
from datetime import datetime

import pytest
import pytest_asyncio
from prometheus_client.parser import text_string_to_metric_families
from prometheus_client.samples import Sample

from gateway.telemetry.buckets import LATENCY
from gateway.telemetry.log_lines import Line
from tests.operation.engine import Engine, asking
from tests.operation.shots import PROMPT_MARK, WRONG_KEY, Samples, Shot, expected, traffic
from tests.support.gateway_process import ADMIN_KEY, KEY, READ_KEY, Process, serving, settings
from tests.support.scripted import scripted

pytestmark = pytest.mark.asyncio(loop_scope="module")

ENGINE_KEY = "sk-" + secrets.token_urlsafe(32)
METRICS_KEY = "sk-" + secrets.token_urlsafe(32)
TTFT = "gateway_time_to_first_token_seconds"

MARKS = [
    f"{name}_ms"
    for name in (
        *("body_complete", "admitted", "sent", "upstream_headers", "first_byte"),
        *("first_token", "last_token", "done"),
    )
]


@dataclass
class Told:
    """A gateway after the traffic: what it was, what is on `/metrics`, and on it in the middle."""

    it: Process
    shots: list[Shot]
    page: str
    page_while_busy: str

    @property
    def samples(self) -> list[Sample]:
        return samples(self.page)

    def sum(self, name: str, **labels: str) -> float:
        return sum(
            sample.value
            for sample in self.samples
            if sample.name == name and labels.items() <= sample.labels.items()
        )


def samples(page: str) -> list[Sample]:
    return [one for family in text_string_to_metric_families(page) for one in family.samples]


async def fire(it: Process, shot: Shot) -> None:
    """Send it, and note what the client sees."""
    body = asking(shot.dialect, stream=shot.stream, **shot.play)
    if shot.path:
        body = {"input": "hi"} if shot.api == "embeddings" else {"prompt": "hi"}
    body["model"] = shot.asked_model or shot.model
    headers = {"authorization": f"Bearer {shot.key or KEY}"}
    if shot.session:
        headers["x-session-id"] = shot.session
    elif shot.model != "unknown":
        headers["x-gateway-arm"] = shot.arm
    start = time.monotonic()
    path = shot.path or shot.dialect.path
    async with it.client.stream("POST", path, json=body, headers=headers, timeout=20) as answer:
        shot.id, shot.status = answer.headers["x-request-id"], answer.status_code
        if shot.leave is not None:
            await asyncio.sleep(shot.leave)
        else:
            await answer.aread()
    shot.seconds = time.monotonic() - start


async def scrape(it: Process) -> str:
    headers = {"authorization": f"Bearer {METRICS_KEY}"}
    answer = await it.client.get("/metrics", headers=headers)
    assert answer.status_code == 200
    return answer.text


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def told(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Told]:
    folder = tmp_path_factory.mktemp("accounts")
    async with AsyncExitStack() as stack:
        urls = {
            name: (await stack.enter_async_context(scripted(Engine(name)))).url
            for name in ("a1", "b1", "t1")
        }
        content = settings(folder, urls["a1"], urls["b1"], metrics={"key": METRICS_KEY})
        content["timeouts"] = {"first_token": 1}
        content["admission"] = {"queue_limit": 1, "queue_timeout": 5}
        content["models"]["tiny"] = {"arms": {"t": {"weight": 1, "backends": ["t1"]}}}
        content["backends"]["t1"] = {"url": urls["t1"], "max_concurrency": 1}
        content["backends"]["a1"] |= {
            "api_key": ENGINE_KEY,
            "engine": {"max_num_batched_tokens": 512, "block_size": 16, "prefix_caching": True},
        }
        it = await stack.enter_async_context(serving(folder, content))
        yield await _after_traffic(it)


async def _after_traffic(it: Process) -> Told:
    shots = traffic()
    for shot in shots[:-3]:
        await fire(it, shot)
    overlapping = []
    for shot in shots[-3:]:
        overlapping.append(asyncio.create_task(fire(it, shot)))
        await asyncio.sleep(0.15)
    busy = await scrape(it)
    await asyncio.gather(*overlapping)
    async with asyncio.timeout(5):
        while len(it.lines) < len(shots):
            await asyncio.sleep(0.05)
    return Told(it, shots, await scrape(it), busy)


# Metrics


async def test_every_count_is_exact_and_there_is_no_other(told: Told) -> None:
    found: Samples = Counter()
    for sample in told.samples:
        if sample.name.startswith("gateway_") and sample.name.endswith(("_total", "_count")):
            found[sample.name, tuple(sorted(sample.labels.items()))] = int(sample.value)
    del found["gateway_access_log_dropped_total", ()]
    wanted = expected(told.shots)
    assert found - wanted == wanted - found == Counter()


async def test_sums_agree_with_the_log_and_with_what_clients_saw(told: Told) -> None:
    lines = {line["id"]: line for line in told.it.lines}
    streams = [shot for shot in told.shots if shot.stream and shot.no_token is None]
    of_log = [
        lines[shot.id]["first_token_ms"] - lines[shot.id]["body_complete_ms"] for shot in streams
    ]
    assert told.sum(f"{TTFT}_sum") == pytest.approx(sum(of_log) / 1000, abs=1e-4)
    seen = sum(shot.seconds for shot in streams)
    asked = sum(shot.play.get("first", 0) for shot in streams)
    assert asked <= told.sum(f"{TTFT}_sum") < seen
    upstream = told.sum("gateway_upstream_time_to_first_token_seconds_sum")
    queue = told.sum("gateway_queue_seconds_sum")
    assert asked <= upstream <= told.sum(f"{TTFT}_sum") - 0.3, "one waited for a place"
    assert 0.3 < queue < 2
    assert told.sum("gateway_time_to_first_byte_seconds_sum") < upstream
    gaps = told.sum("gateway_inter_token_latency_seconds_count")
    # A gap is as much shorter as the read before it was late.
    assert gaps * 0.099 <= told.sum("gateway_inter_token_latency_seconds_sum") < seen
    total = told.sum("gateway_request_duration_seconds_sum")
    assert total == pytest.approx(sum(line["done_ms"] for line in lines.values()) / 1000, abs=1e-4)
    assert 0 < told.sum("gateway_overhead_seconds_sum") < 1


async def test_histograms_have_the_published_buckets_and_rise(told: Told) -> None:
    buckets: dict[str, list[tuple[float, float]]] = {}
    for sample in told.samples:
        if sample.name == f"{TTFT}_bucket":
            labels = dict(sample.labels)
            bound = float(labels.pop("le"))
            buckets.setdefault(str(labels), []).append((bound, sample.value))
    assert len(buckets) == 6, "a: chat, messages, completions; b: chat, responses; t: chat"
    for series in buckets.values():
        assert [bound for bound, _ in series] == [*LATENCY, float("inf")]
        counts = [count for _, count in series]
        assert counts == sorted(counts)


async def test_gauges_tell_the_moment(told: Told) -> None:
    def gauge(name: str, page: str) -> dict[str, float]:
        return {
            one.labels.get("backend") or one.labels["arm"]: one.value
            for one in samples(page)
            if one.name == name
        }

    in_flight = "gateway_requests_in_flight"
    assert gauge(in_flight, told.page_while_busy) == {"a1": 0, "b1": 0, "t1": 1}
    assert gauge(in_flight, told.page) == {"a1": 0, "b1": 0, "t1": 0}
    assert gauge("gateway_backend_up", told.page) == {"a1": 1, "b1": 1, "t1": 1}
    assert gauge("gateway_arm_weight", told.page) == {"a": 50, "b": 50, "t": 1}
    info = {s.labels["backend"]: s for s in told.samples if s.name == "gateway_backend_info"}
    assert info["a1"].value == 1
    assert info["a1"].labels == {
        **{"backend": "a1", "arm": "a", "model": "m", "engine_version": "0.32.0"},
        **{"max_num_batched_tokens": "512", "block_size": "16", "prefix_caching": "true"},
    }


async def test_labels_come_from_the_configuration_only(told: Told) -> None:
    allowed = {
        "model": {"m", "tiny", "unknown"},
        "arm": {"a", "b", "t", "unknown"},
        "backend": {"a1", "b1", "t1", "unknown"},
        "assigned_arm": {"a", "b"},
        "served_arm": {"a", "b"},
        "key": {"dev", "unknown"},
    }
    for sample in told.samples:
        if sample.name.startswith("gateway_"):
            for name, values in allowed.items():
                assert sample.labels.get(name) in values | {None}, sample
    assert "typo-1" not in told.page


# The access log


async def test_one_line_a_request_with_every_field(told: Told) -> None:
    lines = told.it.lines
    assert [line["id"] for line in lines[:-3]] == [shot.id for shot in told.shots[:-3]]
    assert {line["id"] for line in lines} == {shot.id for shot in told.shots}
    assert len(lines) == len(told.shots)
    for line in lines:
        assert list(line) == list(Line.__struct_fields__)
        assert abs(datetime.fromisoformat(line["ts"]).timestamp() - time.time()) < 120


async def test_a_line_says_what_became_of_its_request(told: Told) -> None:
    lines = {line["id"]: line for line in told.it.lines}
    for shot in told.shots:
        line = lines[shot.id]
        configured = {"arm": shot.arm, "backend": shot.backend, "model": shot.model}
        if shot.backend == "unknown":
            configured |= {"arm": "", "backend": ""}
        for name, value in configured.items():
            assert line[name] == value, (name, line)
        assert line["outcome"] == shot.outcome
        assert line["no_token"] == shot.no_token
        assert line["status"] == shot.status
        assert line["key"] == ("" if shot.key else "dev")
        counts = tuple(line[f"{name}_tokens"] for name in ("prompt", "cached", "completion"))
        assert counts == (shot.usage or (None, None, None))
        assert line["forced"] is not bool(shot.session) or shot.model == "unknown"
        assert line["tried"] == shot.play.get("fail", [])
    failed = next(line for line in lines.values() if line["outcome"] == "backend_error")
    assert "a1" in failed["detail"] and "a1" not in failed["error"]


async def test_marks_stand_in_the_order_of_time(told: Told) -> None:
    lines = {line["id"]: line for line in told.it.lines}
    for shot in told.shots:
        marks = [lines[shot.id][name] for name in MARKS]
        passed = [mark for mark in marks if mark is not None]
        assert passed == sorted(passed)
        assert marks[-1] is not None
        whole = shot.stream and shot.no_token is None
        assert (None not in marks) is whole, marks
        if whole and shot.play.get("first"):
            assert marks[5] - marks[4] >= 900 * shot.play["first"], "the opening is no token"


async def test_no_secret_and_no_content_is_written(told: Told) -> None:
    written = (told.it.folder / "access.jsonl").read_text() + told.it.said + told.page
    for secret in (KEY, ADMIN_KEY, READ_KEY, ENGINE_KEY, METRICS_KEY, WRONG_KEY, PROMPT_MARK):
        assert secret not in written
    assert "Traceback" not in told.it.said
