"""`gateway serve`: start, reload, and how it is operated while it runs."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import socket
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import pytest
from prometheus_client.parser import text_string_to_metric_families

from tests.edge.test_relay import ANSWER, FRAMES
from tests.operation.process import (
    ADMIN_KEY,
    KEY,
    READ_KEY,
    Process,
    command,
    serving,
    settings,
    write,
)
from tests.support.scripted import SSE_HEAD, Received, ScriptedBackend, chunk, reply, scripted


async def engine(request: Received, writer: asyncio.StreamWriter) -> None:
    """Answers chat, streamed and not; a streamed answer takes 10 ms a token."""
    body = json.loads(request.body)
    if not body.get("stream"):
        writer.write(reply(json.dumps(ANSWER).encode()))
        return
    writer.write(SSE_HEAD + chunk(FRAMES[0]))
    for _ in range(body.get("max_tokens", 2)):
        await asyncio.sleep(0.01)
        writer.write(chunk(FRAMES[1]))
        await writer.drain()
    writer.write(b"".join(chunk(one) for one in (*FRAMES[3:], b"")))


@pytest.fixture
async def engines() -> AsyncIterator[tuple[ScriptedBackend, ScriptedBackend]]:
    async with scripted(engine) as one, scripted(engine) as two:
        yield one, two


@pytest.fixture
def content(tmp_path: Path, engines: tuple[ScriptedBackend, ScriptedBackend]) -> dict[str, Any]:
    return settings(tmp_path, engines[0].url, engines[1].url)


@pytest.fixture
async def it(tmp_path: Path, content: dict[str, Any]) -> AsyncIterator[Process]:
    async with serving(tmp_path, content) as process:
        yield process


async def arms(it: Process, sessions: int = 60) -> dict[str, str]:
    """The arm of each session, as the replies say it."""
    names = [f"s{number}" for number in range(sessions)]
    replies = await asyncio.gather(*(it.ask(name) for name in names))
    return {name: one.headers["x-gateway-arm"] for name, one in zip(names, replies, strict=True)}


async def test_a_faulty_file_is_refused_with_every_fault(tmp_path: Path) -> None:
    path = write(tmp_path, {"server": {"port": 99999}, "models": {"m": {"arms": {}}}, "oops": 1})
    status, said = await command("serve", "-c", str(path))
    assert status == 2
    for place in ("server.port: ", "models.m.arms: ", "oops: "):
        assert place in said, said
    assert "Traceback" not in said


async def test_a_port_in_use_is_one_sentence(tmp_path: Path, content: dict[str, Any]) -> None:
    with socket.socket() as other:
        other.bind(("127.0.0.1", content["server"]["port"]))
        other.listen()
        status, said = await command("serve", "-c", str(write(tmp_path, content)))
    assert status == 1
    assert "Address already in use" in said and "GATEWAY_SERVER__PORT" in said
    assert len(said.strip().splitlines()) == 1, said


async def test_the_start_says_where_to_point_clients(it: Process) -> None:
    assert f"base URL for OpenAI SDKs and Codex: {it.url}/v1" in it.said
    assert "models: m" in it.said


async def test_a_changed_file_takes_effect_within_two_seconds(
    it: Process, content: dict[str, Any]
) -> None:
    content["models"]["m"]["arms"]["b"]["weight"] = 0
    it.write(content)

    async def changed() -> bool:
        return await it.weights() == {"a": 50, "b": 0}

    await it.eventually(2.0, changed)
    assert set((await arms(it)).values()) == {"a"}


@pytest.mark.parametrize("way", ["signal", "command"])
async def test_reload_by_signal_and_by_command(
    it: Process, content: dict[str, Any], way: str
) -> None:
    content["models"]["n"] = {"arms": {"c": {"weight": 1, "backends": ["c1"]}}}
    content["backends"]["c1"] = {"url": "http://127.0.0.1:1"}
    it.write(content)
    if way == "signal":
        it.child.send_signal(signal.SIGHUP)
        await asyncio.sleep(0.3)
    else:
        status, said = await it.command("reload")
        assert status == 0, said
    assert "n" in [one["id"] for one in (await it.client.get("/v1/models")).json()["data"]]


async def test_a_bad_reload_keeps_the_old_and_says_every_fault(it: Process) -> None:
    it.config.write_text("models: {m: {arms: {}}}\nkeys: [{name: x, key: short}]\n")
    status, said = await it.command("reload")
    assert status == 1 or status == 2
    for place in ("models.m.arms", "keys[0].key"):
        assert place in said and place in it.said
    assert (await it.ask("s")).status_code == 200
    assert it.child.returncode is None


async def test_weights_change_live_and_move_only_the_sessions_they_must(
    it: Process, tmp_path: Path, content: dict[str, Any]
) -> None:
    before = await arms(it, 200)
    share = sum(arm == "a" for arm in before.values())
    assert 70 < share < 130, share
    status, said = await it.command("canary", "set", "m", "a=80", "b=20", "--reason", "ramp")
    assert status == 0, said
    after = await arms(it, 200)
    moved = {name for name in before if before[name] != after[name]}
    assert {before[name] for name in moved} == {"b"}, "only toward the arm that grew"
    assert 30 < len(moved) < 90, len(moved)
    assert await arms(it, 200) == after, "sessions are sticky"
    (latest, *_) = (await it.admin("/history")).json()
    assert latest["reason"] == "ramp" and latest["after"] == {"a": 80, "b": 20}
    stale = {"weights": {"a": 1}, "revision": 1, "reason": ""}
    assert (await it.admin("/models/m/weights", "PUT", json=stale)).status_code == 409
    assert await it.stop() == 0
    async with serving(tmp_path, content) as again:
        assert await again.weights() == {"a": 80, "b": 20}, "lost in the restart"
        assert await arms(again, 200) == after
        content["models"]["m"]["arms"]["a"]["weight"] = 60
        again.write(content)

        async def followed() -> bool:
            return await again.weights() == {"a": 60, "b": 20}

        await again.eventually(3, followed)


async def test_a_backend_is_taken_out_and_put_back(
    it: Process, tmp_path: Path, content: dict[str, Any]
) -> None:
    session = next(name for name, arm in (await arms(it)).items() if arm == "b")
    status, said = await it.command("backends", "out", "b1")
    assert status == 0, said
    moved = await it.ask(session)
    assert moved.headers["x-gateway-backend"] == "a1"
    ready = (await it.client.get("/ready")).json()
    assert ready["models"]["m"]["arms"]["b"] == {"backends": 1, "usable": 0}
    assert await it.stop() == 0
    async with serving(tmp_path, content) as again:
        assert (await again.ask(session)).headers["x-gateway-backend"] == "a1"
        status, said = await again.command("backends", "in", "b1")
        assert status == 0, said
        assert (await again.ask(session)).headers["x-gateway-backend"] == "b1"


async def test_why_tells_where_a_request_went(it: Process) -> None:
    answer = await it.ask("s1", stream=True)
    status, said = await it.command("why", answer.headers["x-request-id"])
    assert status == 0, said
    for word in ("x-session-id", answer.headers["x-gateway-arm"], "TTFT"):
        assert word in said, said
    status, said = await it.command("why", "req_unknown")
    assert status == 1 and "req_unknown" in said


async def test_a_backend_that_dies_is_left_and_found_again(tmp_path: Path) -> None:
    async with AsyncExitStack() as stack:
        alive = await stack.enter_async_context(scripted(engine))
        mortal = AsyncExitStack()
        second = await mortal.enter_async_context(scripted(engine))
        content = settings(tmp_path, alive.url, second.url)
        it = await stack.enter_async_context(serving(tmp_path, content))
        session = next(name for name, arm in (await arms(it)).items() if arm == "b")
        await mortal.aclose()
        answer = await it.ask(session)
        assert (answer.status_code, answer.headers["x-gateway-arm"]) == (200, "a")

        async def down() -> bool:
            return 'gateway_backend_up{backend="b1"} 0' in (await it.client.get("/metrics")).text

        await it.eventually(10, down)
        server = await asyncio.start_server(
            lambda r, w: ScriptedBackend(engine).serve(r, w), "127.0.0.1", second.port
        )
        async with server:

            async def up() -> bool:
                return (await it.ask(session)).headers["x-gateway-arm"] == "b"

            await it.eventually(15, up)
        (log,) = [line for line in it.lines if line["id"] == answer.headers["x-request-id"]]
        assert (log["assigned_arm"], log["arm"], log["tried"]) == ("b", "a", ["b1"])


async def test_a_drain_finishes_streams_and_then_refuses(
    it: Process, tmp_path: Path, content: dict[str, Any]
) -> None:
    stream = asyncio.ensure_future(it.ask("s", stream=True, max_tokens=150))
    await asyncio.sleep(0.3)
    it.child.send_signal(signal.SIGTERM)
    await asyncio.sleep(0.2)
    ready = await it.client.get("/ready")
    assert (ready.status_code, ready.json()["status"]) == (503, "draining")
    assert (await it.ask("late")).status_code == 200, "the listener still accepts for drain_delay"
    await asyncio.sleep(0.7)
    with pytest.raises(ConnectionRefusedError):
        await asyncio.open_connection("127.0.0.1", content["server"]["port"])
    answer = await stream
    assert answer.text.count('"content":"a"') == 150
    assert answer.text.endswith("data: [DONE]\n\n")
    assert await asyncio.wait_for(it.child.wait(), 5) == 0


async def test_a_drain_that_takes_too_long_ends_streams_with_an_error_event(
    tmp_path: Path, content: dict[str, Any]
) -> None:
    content["server"] |= {"drain_delay": 0, "drain_timeout": 1}
    async with serving(tmp_path, content) as it:
        stream = asyncio.ensure_future(it.ask("s", stream=True, max_tokens=1500))
        await asyncio.sleep(0.3)
        it.child.send_signal(signal.SIGTERM)
        answer = await asyncio.wait_for(stream, 5)
        *_, error, done, _ = answer.text.split("\n\n")
        assert "restarting" in json.loads(error.removeprefix("data: "))["error"]["message"]
        assert done == "data: [DONE]"
        assert await asyncio.wait_for(it.child.wait(), 5) == 0


async def test_a_second_signal_ends_at_once(it: Process) -> None:
    stream = asyncio.ensure_future(it.ask("s", stream=True, max_tokens=1500))
    await asyncio.sleep(0.3)
    it.child.send_signal(signal.SIGTERM)
    await asyncio.sleep(0.1)
    it.child.send_signal(signal.SIGTERM)
    assert await asyncio.wait_for(it.child.wait(), 3) == 0
    stream.cancel()


async def test_the_access_log_tells_all_and_holds_no_secret(it: Process) -> None:
    answer = await it.ask("s1", stream=True)
    await it.client.post("/v1/chat/completions", headers={"authorization": "Bearer sk-guess"})
    await asyncio.sleep(0.5)
    first, refused = it.lines
    assert first["id"] == answer.headers["x-request-id"]
    assert (first["key"], first["model"], first["outcome"]) == ("dev", "m", "ok")
    assert first["arm"] == first["assigned_arm"] and first["backend"] == f"{first['arm']}1"
    assert (first["prompt_tokens"], first["cached_tokens"], first["completion_tokens"]) == (7, 4, 2)
    marks = [
        first[f"{mark}_ms"]
        for mark in (
            "body_complete", "admitted", "sent", "upstream_headers", "first_byte",
            "first_token", "last_token", "done",
        )
    ]  # fmt: skip
    assert marks == sorted(marks) and marks[0] >= 0
    assert first["first_token_ms"] - first["first_byte_ms"] >= 5, "the role frame is no token"
    assert (refused["status"], refused["outcome"]) == (401, "rejected")
    written = (it.folder / "access.jsonl").read_text() + it.said
    for secret in (KEY, ADMIN_KEY, READ_KEY, "sk-guess", '"hi"'):
        assert secret not in written


async def test_metrics_agree_with_what_was_sent(it: Process) -> None:
    for number in range(5):
        await it.ask(f"s{number}", stream=True)
    for number in range(3):
        await it.ask(f"s{number}")
    await it.ask("s", model="typo-1")
    page = (await it.client.get("/metrics")).text
    samples = [s for family in text_string_to_metric_families(page) for s in family.samples]

    def total(name: str, **labels: str) -> float:
        return sum(
            s.value for s in samples if s.name == name and labels.items() <= s.labels.items()
        )

    assert total("gateway_requests_total", model="m", api="chat", outcome="ok") == 8
    assert total("gateway_requests_total", model="unknown", outcome="rejected") == 1
    for name in (
        "gateway_time_to_first_token_seconds",
        "gateway_upstream_time_to_first_token_seconds",
        "gateway_time_to_first_byte_seconds",
        "gateway_time_to_first_token_by_prompt_seconds",
    ):
        assert total(f"{name}_count", model="m") == 5, name
    # Two tokens 10 ms apart: one gap each, unless a busy machine brought both in one read.
    assert 1 <= total("gateway_inter_token_latency_seconds_count", model="m") <= 5
    assert total("gateway_time_to_first_token_by_prompt_seconds_count", prompt_tokens="<512") == 5
    assert 0.05 < total("gateway_time_to_first_token_seconds_sum", model="m") < 2
    assert total("gateway_request_duration_seconds_count", stream="false", model="m") == 3
    for name in ("gateway_queue_seconds", "gateway_overhead_seconds"):
        assert total(f"{name}_count", model="m") == 8, name
    assert total("gateway_prompt_tokens_total", model="m") == 56
    assert total("gateway_cached_prompt_tokens_total", model="m") == 32
    assert total("gateway_completion_tokens_total", model="m") == 16
    assert total("gateway_slo_total", model="m", result="met") == 5
    assert total("gateway_requests_in_flight") == 0
    assert total("gateway_backend_up") == 2
    assert total("gateway_arm_weight", model="m", arm="a") == 50
    assert total("gateway_backend_info", backend="a1", arm="a", model="m") == 1
    assert "typo-1" not in page


async def test_only_the_right_keys_open_the_admin_api(it: Process) -> None:
    weights = {"weights": {"a": 10}, "reason": "x"}
    assert (await it.admin("/models", key=KEY)).status_code == 401
    assert (await it.admin("/models", key=READ_KEY)).status_code == 200
    put = await it.admin("/models/m/weights", "PUT", json=weights, key=READ_KEY)
    assert put.status_code == 403
    assert (await it.admin("/models/m/weights", "PUT", json=weights)).status_code == 200
    keys = (await it.admin("/keys")).text
    assert "dev" in keys and KEY not in keys


async def test_the_context_window_is_learnt_from_the_engine(it: Process) -> None:
    async def learnt() -> bool:
        (model,) = (await it.client.get("/v1/models")).json()["data"]
        return bool(model.get("context_window") == 8192)

    await it.eventually(5, learnt)
    page = (await it.client.get("/metrics")).text
    assert 'engine_version="0.32.0"' in page


def test_nothing_is_left_running() -> None:
    """The processes above are children of this one."""
    with pytest.raises(ChildProcessError):
        os.waitpid(-1, os.WNOHANG)
