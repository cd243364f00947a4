"""Weights and backends of a running gateway, changed by its command line, and what moves."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from tests.operation.engine import Engine, asking
from tests.operation.oracle import Oracle
from tests.support.gateway_process import KEY, READ_KEY, Process, serving, settings
from tests.support.scripted import scripted

pytestmark = pytest.mark.asyncio(loop_scope="module")

SESSIONS = [f"session-{number}" for number in range(400)]
SOME = SESSIONS[:100]


@dataclass
class Site:
    """A gateway: arm `a` of model `m` has the backends a1 and a2, arm `b` has b1."""

    it: Process
    folder: Path
    content: dict[str, Any]
    engines: dict[str, Engine]

    async def set(self, *arguments: str) -> str:
        status, said = await self.it.command("canary", "set", "m", *arguments)
        assert status == 0, said
        return said

    async def put(self, **weights: float) -> None:
        answer = await self.it.admin("/models/m/weights", "PUT", json={"weights": weights})
        assert answer.status_code == 200, answer.text

    async def revision(self) -> int:
        return int((await self.it.admin("/models/m")).json()["revision"])


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def site(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Site]:
    folder = tmp_path_factory.mktemp("steering")
    async with AsyncExitStack() as stack:
        engines = {name: Engine(name) for name in ("a1", "a2", "b1")}
        urls = {
            name: (await stack.enter_async_context(scripted(engine))).url
            for name, engine in engines.items()
        }
        content = settings(folder, urls["a1"], urls["b1"])
        content["models"]["m"]["arms"]["a"]["backends"] = ["a1", "a2"]
        content["models"]["m"]["aliases"] = ["gpt-4o"]
        content["backends"]["a2"] = {"url": urls["a2"]}
        it = await stack.enter_async_context(serving(folder, content))
        yield Site(it, folder, content, engines)


async def placed(it: Process, sessions: list[str] = SESSIONS) -> dict[str, tuple[str, str]]:
    """The arm and the backend of each session, as the replies say it."""
    found = {}
    for start in range(0, len(sessions), 8):
        some = sessions[start : start + 8]
        for name, answer in zip(
            some, await asyncio.gather(*(it.ask(name) for name in some)), strict=True
        ):
            assert answer.status_code == 200
            served = (answer.headers["x-gateway-arm"], answer.headers["x-gateway-backend"])
            found[name] = served
    return found


def split(weights: dict[str, float]) -> dict[str, str]:
    """Where each session belongs by these weights."""
    oracle = Oracle(KEY, "m", "chunk", weights)
    return {name: oracle.arm(name) for name in SESSIONS}


def arms(places: dict[str, tuple[str, str]]) -> dict[str, str]:
    return {name: arm for name, (arm, _) in places.items()}


async def test_weights_move_exactly_the_sessions_that_must(site: Site) -> None:
    before = await placed(site.it)
    assert arms(before) == split({"a": 50, "b": 50})
    assert 150 < Counter(arms(before).values())["a"] < 250
    assert Counter(backend for _, backend in before.values())["a1"] > 60, "a has two backends"
    revision = await site.revision()

    said = await site.set("a=90", "b=10", "--reason", "a is better")
    assert f"m: revision {revision + 1}," in said and "90 %" in said
    after = await placed(site.it)
    assert arms(after) == split({"a": 90, "b": 10})
    moved = {name for name in SESSIONS if before[name][0] != after[name][0]}
    assert {before[name][0] for name in moved} == {"b"}, "with two arms, one way only"
    assert 120 < len(moved) < 200, "40 of 50 percent"
    stayed = [name for name in SESSIONS if name not in moved]
    assert all(before[name] == after[name] for name in stayed), "on the same backend, too"
    assert await placed(site.it, stayed[:80]) == {name: after[name] for name in stayed[:80]}

    await site.put(a=50, b=50)
    assert (await placed(site.it, SOME)).items() <= before.items(), "and back"


async def test_a_change_is_told_with_its_revision_and_its_reason(site: Site) -> None:
    revision = await site.revision()
    await site.set("b=30", "--reason", "step one", "--revision", str(revision))
    status, said = await site.it.command("canary", "set", "m", "b=40", "--revision", str(revision))
    assert status == 1
    assert f"at revision {revision + 1} now" in said
    assert await site.it.weights() == {"a": 50, "b": 30}
    stale = {"weights": {"b": 40}, "revision": revision}
    answer = await site.it.admin("/models/m/weights", "PUT", json=stale)
    assert (answer.status_code, answer.json()["error"]["code"]) == (409, "conflict")
    (last, *_) = (await site.it.admin("/history", params={"model": "m", "limit": 1})).json()
    assert last["reason"] == "step one" and last["by"].endswith("(cli)")
    assert (last["before"], last["after"]) == ({"a": 50, "b": 50}, {"a": 50, "b": 30})
    _, said = await site.it.command("canary", "status", "gpt-4o")
    assert f"m: revision {revision + 1}, set by" in said and "step one" in said
    await site.put(b=50)
    status, said = await site.it.command("canary", "set", "m", "c=1")
    assert status == 1 and "has no arm `c`; it has `a`, `b`" in said
    page = (await site.it.client.get("/metrics")).text
    assert 'gateway_arm_weight{model="m",arm="b"} 50' in page


async def test_a_backend_taken_out_gets_nothing_new_and_finishes_what_it_has(site: Site) -> None:
    at_b = next(name for name, arm in split({"a": 50, "b": 50}).items() if arm == "b")
    body = asking(first=0.5, tokens=30, gap=0.1)
    running = asyncio.create_task(
        site.it.client.post(
            "/v1/chat/completions", json=body, headers={"x-session-id": at_b}, timeout=20
        )
    )
    while at_b not in site.engines["b1"].asked:
        await asyncio.sleep(0.02)
    status, said = await site.it.command("backends", "out", "b1")
    assert status == 0
    assert "b1 is out. Requests still running on it: 1." in said
    assert "Arm b has no usable backend left" in said
    asked = len(site.engines["b1"].asked)
    assert {arm for arm, _ in (await placed(site.it, SOME)).values()} == {"a"}
    assert len(site.engines["b1"].asked) == asked
    _, listed = await site.it.command("backends")
    (row,) = [line for line in listed.splitlines() if line.startswith("b1")]
    assert "taken out" in row
    finished = await running
    assert finished.text.count('"content":"a"') == 30
    assert finished.text.endswith("data: [DONE]\n\n")
    status, said = await site.it.command("backends", "in", "b1")
    assert (status, said.strip()) == (0, "b1 is back: up.")
    places = arms(await placed(site.it, SOME))
    assert places.items() <= split({"a": 50, "b": 50}).items()


async def test_sessions_of_a_lost_backend_go_to_its_arms_other_one(site: Site) -> None:
    before = await placed(site.it, SOME)
    assert (await site.it.admin("/backends/a1", "PUT", json={"enabled": False})).status_code == 200
    after = await placed(site.it, SOME)
    expected = {
        name: ("a", "a2") if place == ("a", "a1") else place for name, place in before.items()
    }
    assert after == expected
    assert (await site.it.admin("/backends/a1", "PUT", json={"enabled": True})).status_code == 200
    assert await placed(site.it, SOME) == before


async def test_the_command_line_lists_models_and_backends(site: Site) -> None:
    (_, models), (_, backends) = await asyncio.gather(
        site.it.command("models"), site.it.command("backends")
    )
    headings, row = models.splitlines()
    assert headings.split() == ["MODEL", "ALIASES", "ARMS", "BACKENDS"]
    assert row.split() == ["m", "gpt-4o", "a", "50", "%,", "b", "50", "%", "3", "of", "3", "usable"]
    headings, *rows = backends.splitlines()
    assert headings.split() == ["BACKEND", "MODEL", "ARM", "STATE", "RUNNING", "APIS", "URL"]
    urls = {name: part["url"] for name, part in site.content["backends"].items()}
    assert sorted(row.split() for row in rows) == [
        [name, "m", name[0], "up", "0", "of", "256", "all", urls[name]] for name in sorted(urls)
    ]


async def test_why_tells_where_a_request_went(site: Site) -> None:
    body = asking(first=0.2)
    headers = {"x-session-id": "session-1"}
    answer = await site.it.client.post("/v1/chat/completions", json=body, headers=headers)
    arm, backend = answer.headers["x-gateway-arm"], answer.headers["x-gateway-backend"]
    status, said = await site.it.command("why", answer.headers["x-request-id"])
    assert status == 0
    told = dict(line.split(":", 1) for line in said.splitlines())
    assert "by x-session-id (hash " in told["Session"]
    assert "session-1" not in said
    assert f"falls to {arm} by the weights of revision {await site.revision()}" in told["Arm"]
    assert "a 50 (50 %), b 50 (50 %)" in told["Arm"]
    assert told["Backend"].strip() == f"{backend} of arm {arm}, the first one tried."
    view = (await site.it.admin(f"/requests/{answer.headers['x-request-id']}")).json()["ttft"]
    assert view["total_ms"] > 200 and view["engine_ms"] > 200
    parts = view["queue_ms"] + view["gateway_ms"] + view["engine_ms"]
    assert view["total_ms"] == pytest.approx(parts, abs=0.01)
    assert "7 of prompt, 57.1 % of them cached; 2 generated." in told["Tokens"]
    status, said = await site.it.command("why", "req_unknown")
    assert status == 1 and "req_unknown" in said


async def test_only_the_right_keys_open_the_admin_api(site: Site) -> None:
    it = site.it
    weights = {"weights": {"a": 10}}
    for path in ("/models", "/backends", "/keys", "/history", "/requests/x", "/models/m"):
        assert (await it.admin(path, key=KEY)).status_code == 401, path
        assert (await it.admin(path, key=READ_KEY)).status_code in (200, 404), path
    for method, path, body in (
        ("PUT", "/models/m/weights", weights),
        ("PUT", "/backends/b1", {"enabled": False}),
        ("POST", "/reload", None),
    ):
        answer = await it.admin(path, method, json=body, key=READ_KEY)
        assert (answer.status_code, answer.json()["error"]["code"]) == (403, "read_only_key")
    assert await it.weights() == {"a": 50, "b": 50}
    assert (await it.client.get("/ready")).json()["models"]["m"]["arms"]["b"]["usable"] == 1
    keys = (await it.admin("/keys")).text
    assert '"dev"' in keys and KEY not in keys


async def test_the_context_window_is_learnt_from_the_engines(site: Site) -> None:
    async def learnt() -> bool:
        model, alias = (await site.it.client.get("/v1/models")).json()["data"]
        return bool(model.get("context_window") == alias.get("context_window") == 8192)

    await site.it.eventually(5, learnt)
    page = (await site.it.client.get("/metrics")).text
    assert page.count('engine_version="0.32.0"') == 3


async def test_what_was_set_survives_a_restart_until_the_file_says_otherwise(site: Site) -> None:
    await site.put(a=80, b=20)
    assert (await site.it.command("backends", "out", "a2"))[0] == 0
    before, revision = await placed(site.it, SOME), await site.revision()
    assert await site.it.stop() == 0
    async with serving(site.folder, site.content) as it:
        assert await it.weights() == {"a": 80, "b": 20}
        assert (await it.admin("/models/m")).json()["revision"] == revision
        assert await placed(it, SOME) == before
        assert "a2" not in {backend for _, backend in before.values()}
        # Only the arm whose value in the file changed follows the file.
        site.content["models"]["m"]["arms"]["a"]["weight"] = 60
        it.write(site.content)
        assert (await it.admin("/reload", "POST")).status_code == 200
        assert await it.weights() == {"a": 60, "b": 20}
        (last, *_) = (await it.admin("/history")).json()
        assert (last["by"], last["revision"]) == ("file", revision + 1)
        assert last["reason"] == "the file changed; overrides dropped: a"
