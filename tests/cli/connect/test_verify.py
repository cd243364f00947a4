"""`gateway connect --verify`: a real request, and in one sentence what is wrong."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import AsyncIterator, Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from gateway.cli.connect.verify import Verdict, verify
from gateway.clients.known import CLIENTS
from gateway.clients.setup import Target
from tests.support.apis import CHAT, MESSAGES, RESPONSES
from tests.support.ports import nobody
from tests.support.running import KEY, configuration, running
from tests.support.scripted import ScriptedBackend, reply, scripted
from tests.support.simulated import UPSTREAM, Simulated, simulated
from tests.support.site import answers, refuses, says, streams

DIALECTS = {CHAT.api: CHAT, MESSAGES.api: MESSAGES, RESPONSES.api: RESPONSES}

pytestmark = pytest.mark.asyncio(loop_scope="module")

every_client = pytest.mark.parametrize("client", CLIENTS)


@pytest.fixture(autouse=True)
def no_proxies(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("http_proxy", "https_proxy", "all_proxy", "no_proxy"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def both(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Simulated]:
    async with simulated(tmp_path_factory.mktemp("both")) as found:
        yield found


async def tried(client: str, target: Target, *, use_proxy: bool = False) -> Verdict:
    return await asyncio.to_thread(
        verify, CLIENTS[client], target, env=os.environ, use_proxy=use_proxy
    )


def target(both: Simulated, **changes: Any) -> Target:
    return replace(Target(both.it.url, KEY, "m"), **changes)


# It works


@every_client
async def test_each_client_gets_an_answer(both: Simulated, client: str) -> None:
    before = len(both.it.records)
    verdict = await tried(client, target(both))
    assert verdict.ok, verdict.sentence
    assert verdict.remark is None
    title = CLIENTS[client].title
    assert verdict.sentence == f"It works: {title} gets answers of model m from arm a0."
    assert verdict.ttft_ms is not None and 0 < verdict.ttft_ms < 30_000
    record = await both.it.record(before + 1)
    assert record.stream and record.api is CLIENTS[client].api
    assert record.usage is not None and record.usage.completion <= 16


async def test_the_command(
    run: Callable[..., Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The model is asked of the gateway, the file is written, and then it is tried."""
    async with scripted(answers(CHAT)) as backend:
        settings = configuration(tmp_path, backend.url)
        settings["models"]["m"]["context_window"] = 8192
        async with running(settings, tmp_path) as it:
            monkeypatch.setenv("HOME", str(tmp_path))
            monkeypatch.setenv("GATEWAY_URL", it.url)
            monkeypatch.setenv("GATEWAY_KEY", KEY)
            words = ("connect", "opencode", "--write", "--yes", "--verify")
            result = await asyncio.to_thread(run, *words)
            assert result.status == 0, result.err
    said = "It works: opencode gets answers of model m from arm a0. First token after"
    assert said in result.out
    content = json.loads((tmp_path / ".config/opencode/opencode.json").read_text())
    provider = content["provider"]["ttft-gateway"]
    assert provider["options"] == {"baseURL": f"{it.url}/v1", "apiKey": KEY}
    assert provider["models"] == {"m": {"name": "m", "limit": {"context": 8192, "output": 2048}}}


async def test_the_command_for_programs(
    both: Simulated, run: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GATEWAY_URL", both.it.url)
    monkeypatch.setenv("GATEWAY_KEY", KEY)
    words = ("connect", "codex", "--json", "--verify")
    good = await asyncio.to_thread(run, *words)
    assert good.status == 0
    verified = json.loads(good.out)["verified"]
    assert (verified["ok"], verified["status"], verified["arm"]) == (True, 200, "a0")
    bad = await asyncio.to_thread(run, *words, "--model", "absent")
    assert bad.status == 1
    verified = json.loads(bad.out)["verified"]
    assert (verified["ok"], verified["status"]) == (False, 400)
    assert "There is no model `absent` here" in verified["sentence"]


# It does not


@every_client
async def test_an_unknown_key(both: Simulated, client: str) -> None:
    verdict = await tried(client, target(both, key=KEY[:-1]))
    assert (verdict.ok, verdict.status) == (False, 401)
    assert f"does not know this key, {len(KEY) - 1} characters long: copy" in verdict.sentence
    assert KEY[:-1] not in verdict.sentence


@every_client
async def test_an_unknown_model(both: Simulated, client: str) -> None:
    verdict = await tried(client, target(both, model="absent"))
    # Codex tries everything else again that is refused.
    assert (verdict.ok, verdict.status) == (False, 400 if client == "codex" else 404)
    assert "There is no model `absent` here. Models for this key: `m`" in verdict.sentence


async def test_nobody_listens() -> None:
    with nobody() as url:
        verdict = await tried("codex", Target(url, KEY, "m"))
    assert verdict == Verdict(
        False,
        f"Nothing answers at {url}: start it with gateway serve, or give its address with --url.",
    )


@pytest.mark.parametrize(
    "page",
    [
        reply(b"<h1>It works!</h1>", headers="content-type: text/html\r\n"),
        reply(b"<h1>404</h1>", status="404 Not Found", headers="content-type: text/html\r\n"),
        reply(b'{"detail":"Not Found"}', status="404 Not Found"),
        reply(b'{"error":{"message":"no route"}}', status="404 Not Found"),
    ],
)
async def test_something_else_listens(page: bytes) -> None:
    async with scripted(says(page)) as other:
        verdict = await tried("curl", Target(other.url, KEY, "m"))
    assert not verdict.ok
    assert f"What answers at {other.url}/v1/chat/completions is no TTFT Gateway" in verdict.sentence


async def test_something_that_is_no_http_listens() -> None:
    async with scripted(says(b"SSH-2.0-OpenSSH_9.9\r\n", close=True)) as other:
        verdict = await tried("curl", Target(other.url, KEY, "m"))
    assert "does not speak HTTP as expected" in verdict.sentence


async def through(tmp_path: Path, backend: ScriptedBackend, client: str, **changes: Any) -> Verdict:
    async with running(configuration(tmp_path, backend.url, **changes), tmp_path) as it:
        return await tried(client, Target(it.url, KEY, "m"))


@pytest.mark.parametrize("client", ["claude-code", "codex", "curl"])
async def test_no_server_of_the_model_answers(tmp_path: Path, client: str) -> None:
    async with scripted(refuses("500 Internal Server Error")) as backend:
        verdict = await through(tmp_path, backend, client)
    assert not verdict.ok
    assert verdict.sentence.startswith("Refused")
    assert "The model's server failed to answer" in verdict.sentence


@pytest.mark.parametrize("client", ["claude-code", "codex", "curl"])
async def test_the_gateway_s_own_words_are_repeated(tmp_path: Path, client: str) -> None:
    """Codex is told of failures within a stream."""
    unknown = reply(
        b'{"error":{"message":"The model `m` does not exist."}}', status="404 Not Found"
    )
    async with scripted(says(unknown)) as backend:
        verdict = await through(tmp_path, backend, client)
    assert "does not know the model it should serve" in verdict.sentence


@pytest.mark.parametrize("client", ["claude-code", "codex", "curl"])
async def test_an_answer_that_breaks_off(tmp_path: Path, client: str) -> None:
    dialect = DIALECTS[CLIENTS[client].api]
    begun = streams(*dialect.opening, *dialect.tokens, dialect.error, pause=0.05)
    async with scripted(begun) as backend:
        verdict = await through(tmp_path, backend, client)
    assert not verdict.ok and verdict.status == 200
    assert verdict.sentence.startswith("The answer broke off: ")


@pytest.mark.parametrize("client", ["claude-code", "codex", "curl"])
async def test_an_answer_without_a_word(tmp_path: Path, client: str) -> None:
    dialect = DIALECTS[CLIENTS[client].api]
    async with scripted(streams(*dialect.opening, *dialect.ending)) as backend:
        verdict = await through(tmp_path, backend, client)
    assert not verdict.ok and "ended without a word" in verdict.sentence


async def test_a_key_at_its_limit(tmp_path: Path) -> None:
    keys = [{"name": "dev", "key": KEY, "requests_per_minute": 1}]
    async with scripted(answers(CHAT)) as backend:
        settings = configuration(tmp_path, backend.url, keys=keys)
        async with running(settings, tmp_path) as it:
            assert (await tried("curl", Target(it.url, KEY, "m"))).ok
            verdict = await tried("curl", Target(it.url, KEY, "m"))
    assert verdict.status == 429
    assert "Refused with HTTP 429: Key `dev` has used its 1 requests per minute" in verdict.sentence


async def test_the_engine_itself_answers(both: Simulated) -> None:
    verdict = await tried("codex", Target(both.engine.url, KEY, UPSTREAM))
    assert verdict.ok and verdict.remark is not None
    assert f"No gateway answers at {both.engine.url}: that may be the engine" in verdict.remark


async def test_a_request_id_alone_makes_no_gateway() -> None:
    """OpenAI and engines so configured send one, too."""
    unknown = reply(
        b'{"error":{"message":"Invalid URL"}}',
        status="404 Not Found",
        headers="x-request-id: req_1\r\n",
    )
    async with scripted(says(unknown)) as other:
        verdict = await tried("curl", Target(other.url, KEY, "m"))
    assert "is no TTFT Gateway (HTTP 404, " in verdict.sentence
    carriers = [KEY in str(one.headers) for one in other.requests]
    assert carriers == [True, *[False] * (len(carriers) - 1)], "only the trial needs the key"


async def test_no_sentence_repeats_the_key() -> None:
    refusal = json.dumps({"error": {"message": f"no such key: {KEY}"}}).encode()
    async with scripted(says(reply(refusal, status="401 Unauthorized"))) as other:
        verdict = await tried("curl", Target(other.url, KEY, "m"))
    assert verdict.sentence == ("Refused with HTTP 401: no such key: sk-t… (30 characters)")


async def test_a_gateway_behind_a_path(both: Simulated) -> None:
    """It is given no prefix, and needs none; with one it works all the same."""
    verdict = await tried("codex", target(both, root=f"{both.it.url}/api"))
    assert (verdict.ok, verdict.remark) == (True, None)


async def test_a_proxy_of_another_kind(both: Simulated, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ALL_PROXY", "gopher://127.0.0.1:1")
    assert (await tried("curl", target(both))).ok
    verdict = await tried("curl", target(both), use_proxy=True)
    assert "ALL_PROXY names is no HTTP proxy" in verdict.sentence


# Proxies


async def test_a_proxy_left_over_is_told_though_it_is_not_used(
    both: Simulated, monkeypatch: pytest.MonkeyPatch
) -> None:
    with nobody() as proxy:
        monkeypatch.setenv("HTTP_PROXY", proxy)
        direct = await tried("claude-code", target(both))
        assert direct.ok
        assert direct.remark == (
            "A client that heeds HTTP_PROXY would go through a proxy: "
            "export NO_PROXY=127.0.0.1,localhost"
        )
        used = await tried("claude-code", target(both), use_proxy=True)
        assert not used.ok
        assert "The proxy that HTTP_PROXY names failed: export NO_PROXY=127" in used.sentence
        monkeypatch.setenv("NO_PROXY", "localhost,127.0.0.1")
        for use_proxy in (False, True):
            exempt = await tried("claude-code", target(both), use_proxy=use_proxy)
            assert (exempt.ok, exempt.remark) == (True, None)
