"""What a reload changes in a running gateway, and what it must not."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from gateway.settings import Settings
from tests.edge.test_relay import CHAT, answering
from tests.support import apis
from tests.support.running import ADMIN_KEY, configuration, running
from tests.support.scripted import SSE_HEAD, Received, chunk, reply, scripted


async def test_a_reload_that_changes_nothing_keeps_connections(tmp_path: Path) -> None:
    async with scripted(answering(reply(b"{}"))) as backend:
        settings = configuration(tmp_path, backend.url)
        async with running(settings, tmp_path) as it:
            for _ in range(3):
                await it.client.post("/v1/chat/completions", json=CHAT)
                await it.gateway.reload(Settings.model_validate(settings))
            assert backend.connections == 1


async def test_a_changed_connect_timeout_holds_for_backends_that_stay(tmp_path: Path) -> None:
    async with scripted(answering(reply(b"{}"))) as backend:
        settings = configuration(tmp_path, backend.url)
        async with running(settings, tmp_path) as it:
            await it.client.post("/v1/chat/completions", json=CHAT)
            await it.gateway.reload(
                Settings.model_validate(settings | {"timeouts": {"connect": 0.5}})
            )
            live = it.gateway.context.table.backends["b0"]
            assert it.gateway.context.pool_of(live).connect_timeout == 0.5
            await it.client.post("/v1/chat/completions", json=CHAT)
            await asyncio.wait_for(backend.gone.wait(), 1)


async def test_what_waits_for_a_restart_is_told_until_then(tmp_path: Path) -> None:
    async with scripted(answering(reply(b"{}"))) as backend:
        settings = configuration(tmp_path, backend.url)
        new = Settings.model_validate(
            settings | {"server": {"port": 9000, "drain_delay": 1}, "traces": {"sample_ratio": 0.5}}
        )
        async with running(settings, tmp_path) as it:
            waiting = [
                f"{path} (takes effect at the next start)"
                for path in ("server.port: 0 → 9000", "traces.sample_ratio: 1 → 0.5")
            ]
            first = await it.gateway.reload(new)
            assert [line for line in first if "drain_delay" not in line] == waiting
            assert len(first) == 3
            assert await it.gateway.reload(new) == waiting
            assert await it.gateway.reload(Settings.model_validate(settings)) != waiting


async def test_a_request_under_way_survives_the_loss_of_its_backend(tmp_path: Path) -> None:
    release = asyncio.Event()

    async def script(request: Received, writer: asyncio.StreamWriter) -> None:
        await release.wait()
        writer.write(reply(b"{}"))

    async with scripted(script) as old, scripted(script) as new:
        settings = configuration(tmp_path, old.url)
        async with running(settings, tmp_path) as it:
            first = asyncio.create_task(it.client.post("/v1/chat/completions", json=CHAT))
            while not old.requests:
                await asyncio.sleep(0.005)
            await it.gateway.reload(Settings.model_validate(configuration(tmp_path, new.url)))
            second = asyncio.create_task(it.client.post("/v1/chat/completions", json=CHAT))
            while not new.requests:
                await asyncio.sleep(0.005)
            release.set()
            assert [(await one).status_code for one in (first, second)] == [200, 200]
            await asyncio.wait_for(old.gone.wait(), 1)
            assert (len(old.requests), len(new.requests)) == (1, 1)


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Another process is writing to the gateway's database, and takes its time."""
    other = sqlite3.connect(folder / "gateway.db", isolation_level=None)
    try:
        other.execute("BEGIN IMMEDIATE")
        yield
    finally:
        other.close()


async def test_streams_go_on_while_the_database_keeps_a_reload_waiting(tmp_path: Path) -> None:
    waiting, first = asyncio.Event(), b"".join(apis.CHAT.opening)

    async def script(request: Received, writer: asyncio.StreamWriter) -> None:
        writer.write(SSE_HEAD + chunk(first))
        await waiting.wait()
        writer.write(chunk(b"".join(apis.CHAT.frames).removeprefix(first)) + chunk(b""))

    async with scripted(script) as backend:
        settings = configuration(tmp_path, backend.url)
        async with running(settings, tmp_path) as it:
            settings["models"]["m"]["arms"]["a0"]["weight"] = 7
            settings["keys"] = []
            with locked(tmp_path):
                content = b""
                request = it.client.stream("POST", apis.CHAT.path, json=apis.CHAT.streamed)
                async with request as response:
                    reload = asyncio.create_task(
                        it.gateway.reload(Settings.model_validate(settings))
                    )
                    async for part in response.aiter_raw():
                        content += part
                        await asyncio.sleep(0.02)
                        waiting.set()
                assert content == b"".join(apis.CHAT.frames)
                assert not reload.done()
                assert it.gateway.context.keyring.keys, "as a whole, or not yet"
            await reload
            assert it.gateway.context.table.routes["m"].weights == {"a0": 7}
            assert not it.gateway.context.keyring.keys


async def test_a_backend_taken_out_during_a_reload_stays_out(tmp_path: Path) -> None:
    settings = configuration(tmp_path, "http://127.0.0.1:9")
    admin = {"authorization": f"Bearer {ADMIN_KEY}"}
    async with running(settings, tmp_path) as it:
        settings["models"]["m"]["arms"]["a0"]["weight"] = 7
        with locked(tmp_path):
            reload = asyncio.create_task(it.gateway.reload(Settings.model_validate(settings)))
            await asyncio.sleep(0.3)
            out = {"enabled": False}
            request = it.client.put("/admin/v1/backends/b0", json=out, headers=admin)
            answer = asyncio.create_task(request)
            await asyncio.sleep(0.05)
        assert (await answer).is_success
        await reload
        assert not it.gateway.context.table.backends["b0"].enabled


async def test_web_pages_are_let_in_by_the_origins_in_force(tmp_path: Path) -> None:
    """The question a browser asks first is answered by the same list as the request behind it."""
    settings = configuration(tmp_path, "http://127.0.0.1:9")
    page = {"origin": "https://page.example"}
    asks = {**page, "access-control-request-method": "POST"}
    granted = "access-control-allow-origin"
    async with running(settings, tmp_path) as it:
        for origins, allows in ([], False), ([page["origin"]], True), (["*"], True), ([], False):
            settings["server"]["cors_origins"] = origins
            await it.gateway.reload(Settings.model_validate(settings))
            first = await it.client.options("/v1/chat/completions", headers=asks)
            assert first.is_success is allows, origins
            for answer in (
                first,
                await it.client.post("/v1/chat/completions", headers=page, json={}),
                await it.client.get("/v1/models", headers=page),
            ):
                found = answer.headers.get(granted)
                assert found == (page["origin"] if allows else None), (origins, answer.request.url)


async def test_a_configured_context_window_counts_before_the_engines(tmp_path: Path) -> None:
    async with scripted(answering(reply(b"{}"))) as backend:
        settings = configuration(tmp_path, backend.url)
        async with running(settings, tmp_path) as it:
            async with asyncio.timeout(5):
                while it.gateway.context.table.routes["m"].context_window is None:
                    await asyncio.sleep(0.01)
            assert it.gateway.context.table.routes["m"].context_window == 8192
            settings["models"]["m"]["context_window"] = 4096
            await it.gateway.reload(Settings.model_validate(settings))
            assert it.gateway.context.table.routes["m"].context_window == 4096
