"""`gateway serve`: how it starts or says why not, and how it takes a changed file over."""

from __future__ import annotations

import asyncio
import copy
import os
import re
import resource
import secrets
import signal
import socket
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
import yaml

from tests.operation.engine import Engine, asking
from tests.support.gateway_process import Process, command, serving, settings, write
from tests.support.scripted import scripted

pytestmark = pytest.mark.asyncio(loop_scope="module")

WEAK_KEY = "hunter-2-hunter-2"
FILES = 512
"""How many a process may open that does not ask for more."""


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def running(
    tmp_path_factory: pytest.TempPathFactory,
) -> AsyncIterator[tuple[Process, dict[str, Any]]]:
    folder = tmp_path_factory.mktemp("serve")
    async with AsyncExitStack() as stack:
        a1 = await stack.enter_async_context(scripted(Engine("a1")))
        b1 = await stack.enter_async_context(scripted(Engine("b1")))
        content = settings(folder, a1.url, b1.url)
        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        resource.setrlimit(resource.RLIMIT_NOFILE, (min(FILES, hard), hard))
        try:
            process = await stack.enter_async_context(serving(folder, content))
        finally:
            resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
        yield process, content


@pytest_asyncio.fixture(loop_scope="module")
async def it(running: tuple[Process, dict[str, Any]]) -> AsyncIterator[Process]:
    """The gateway, put back to the file it was started with afterwards."""
    it, content = running
    yield it
    it.write(content)
    assert (await it.admin("/reload", "POST")).status_code == 200


@pytest.fixture
def content(running: tuple[Process, dict[str, Any]]) -> dict[str, Any]:
    """A copy of the file it was started with."""
    return copy.deepcopy(running[1])


def said_since(it: Process) -> Callable[[], str]:
    """What it writes to standard error from now on."""
    start = len(it.said)
    return lambda: it.said[start:]


# The start


async def test_a_faulty_file_is_refused_with_every_fault(tmp_path: Path) -> None:
    faulty = {
        "server": {"port": 99999},
        "models": {"m": {"arms": {}}},
        "keys": [{"name": "x", "key": WEAK_KEY}],
        "oops": 1,
    }
    status, said = await command("serve", "-c", str(write(tmp_path, faulty)))
    assert status == 2
    lines = said.splitlines()
    assert [line.partition(": ")[0] for line in lines] == [
        *("server.port", "models.m.arms", "keys[0].key", "oops", "backends")
    ]
    assert WEAK_KEY not in said and "Traceback" not in said


async def test_a_file_that_is_not_there_is_one_sentence(tmp_path: Path) -> None:
    status, said = await command("serve", "-c", str(tmp_path / "nothing.yaml"))
    assert status == 2
    assert said == f"{tmp_path}/nothing.yaml: no such file; gateway init writes one\n"


async def test_a_port_in_use_is_one_sentence(tmp_path: Path, content: dict[str, Any]) -> None:
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        content["server"]["port"] = port = other.getsockname()[1]
        content["database_url"] = f"sqlite:///{tmp_path}/other.db"
        status, said = await command("serve", "-c", str(write(tmp_path, content)))
    assert status == 1
    assert said == (
        f"cannot listen on 127.0.0.1:{port}: Address already in use. Is another gateway running? "
        "Choose another port with server.port or GATEWAY_SERVER__PORT.\n"
    )


async def test_a_host_that_is_not_this_machine_is_another_sentence(
    tmp_path: Path, content: dict[str, Any]
) -> None:
    content["database_url"] = f"sqlite:///{tmp_path}/other.db"
    elsewhere = {"GATEWAY_SERVER__HOST": "192.0.2.1", "GATEWAY_SERVER__PORT": "0"}
    status, said = await command("serve", "-c", str(write(tmp_path, content)), env=elsewhere)
    assert status == 1
    assert said == (
        "cannot listen on 192.0.2.1:0: Cannot assign requested address. Set server.host or "
        "GATEWAY_SERVER__HOST to an address of this machine, or to 0.0.0.0 for all of them.\n"
    )


async def test_the_start_says_where_to_point_clients(it: Process) -> None:
    start = [line.partition(" INFO ")[2] for line in it.said.splitlines()]
    for line in (
        f"listening on {it.url}",
        f"base URL for OpenAI SDKs and Codex: {it.url}/v1",
        f"base URL for Claude Code and Anthropic SDKs: {it.url}",
        "models: m",
        f"weights and backends taken out are kept in {it.folder / 'gateway.db'}",
    ):
        assert line in start
    assert "uvicorn" not in it.said.lower()


async def test_it_may_open_as_many_files_as_the_system_allows(it: Process) -> None:
    """A stream takes two, and 1024 is what most systems give who does not ask."""
    soft, hard = resource.prlimit(it.child.pid, resource.RLIMIT_NOFILE)
    assert soft == hard > FILES


# The access log


@pytest.mark.parametrize(
    ("opened", "words", "json"),
    [(os.openpty, [], False), (os.openpty, ["--access-log", "-"], True), (os.pipe, [], True)],
    ids=["a terminal", "a terminal, by name", "a pipe"],
)
async def test_standard_output_has_short_lines_where_it_is_a_terminal(
    tmp_path: Path,
    opened: Callable[[], tuple[int, int]],
    words: list[str],
    json: bool,
) -> None:
    reader, writer = opened()
    async with scripted(Engine("a1")) as a1:
        content = settings(tmp_path, a1.url, a1.url)
        async with serving(tmp_path, content, words, stdout=writer) as it:
            assert (await it.ask("s1")).status_code == 200
            await it.stop()
        (line,) = os.read(reader, 1 << 16).decode().splitlines()
    os.close(reader)
    os.close(writer)
    if json:
        assert line.startswith('{"ts":') and '"status":200' in line
    else:
        marks = r"\d\d:\d\d:\d\d 200  unstreamed      total    0.\d{3} s"
        assert re.fullmatch(marks + r"  chat dev m (a a1|b b1) req_\w+", line), line


# A changed file


@pytest.mark.parametrize("swapped", [False, True])
async def test_a_changed_file_takes_effect_within_two_seconds(
    it: Process, content: dict[str, Any], swapped: bool
) -> None:
    """Written in place or replaced by another, as editors and Kubernetes do."""
    content["models"]["m"]["arms"]["b"]["weight"] = 0
    if swapped:
        it.write(content)
    else:
        it.config.write_text(yaml.safe_dump(content))

    async def changed() -> bool:
        return await it.weights() == {"a": 50, "b": 0}

    await it.eventually(2.0, changed)
    served = {(await it.ask(str(number))).headers["x-gateway-arm"] for number in range(20)}
    assert served == {"a"}


async def test_reload_by_signal(it: Process, content: dict[str, Any]) -> None:
    """The signal alone: a secret the file refers to may have changed, and not the file."""
    said = said_since(it)
    it.child.send_signal(signal.SIGHUP)

    async def reloaded() -> bool:
        return f"configuration reloaded from {it.config}" in said()

    await it.eventually(1.0, reloaded)


async def test_reload_by_command(it: Process, content: dict[str, Any]) -> None:
    """What the file refers to has changed, which only a reload that is asked for can see."""
    fresh, weight = "sk-" + secrets.token_urlsafe(32), it.folder / "weight"
    (it.folder / "key").write_text("sk-" + secrets.token_urlsafe(32))
    weight.write_text("50")
    content["models"]["m"]["arms"]["b"]["weight"] = f"${{file:{weight}}}"
    content["keys"].append({"name": "new", "key": f"${{file:{it.folder}/key}}"})
    it.write(content)
    assert (await it.admin("/reload", "POST")).status_code == 200
    weight.write_text("0")
    (it.folder / "key").write_text(fresh)
    status, said = await it.command("reload")
    assert status == 0
    assert said.splitlines() == ["models.m.arms.b.weight: 50 → 0", "keys.new.key: changed"]
    assert await it.weights() == {"a": 50, "b": 0}
    headers = {"authorization": f"Bearer {fresh}"}
    assert (await it.client.get("/v1/models", headers=headers)).status_code == 200


async def test_an_open_stream_is_not_disturbed_by_reloads(
    it: Process, content: dict[str, Any]
) -> None:
    stream = asyncio.create_task(
        it.client.post("/v1/chat/completions", json=asking(tokens=60, gap=0.02), timeout=20)
    )
    await asyncio.sleep(0.2)
    del content["models"]["m"]["arms"]["b"], content["backends"]["b1"]
    content["backends"]["a1"]["url"] = "http://127.0.0.1:1"
    it.write(content)
    assert (await it.admin("/reload", "POST")).status_code == 200
    answer = await stream
    assert answer.text.count('"content":"a"') == 60
    assert answer.text.endswith("data: [DONE]\n\n")


@pytest.mark.parametrize("way", ["file", "signal", "command"])
async def test_a_bad_reload_keeps_the_old_and_says_every_fault(it: Process, way: str) -> None:
    said = said_since(it)
    places = ("models.m.arms: ", "keys[0].key: ")
    it.config.write_text(f"models: {{m: {{arms: {{}}}}}}\nkeys: [{{name: x, key: {WEAK_KEY}}}]\n")
    if way == "signal":
        it.child.send_signal(signal.SIGHUP)
    elif way == "command":
        status, answer = await it.command("reload")
        assert status == 1
        assert "The configuration has faults, so the one in force stays:" in answer
        assert all(place in answer for place in places) and WEAK_KEY not in answer

    async def told() -> bool:
        return all(place in said() for place in places)

    await it.eventually(2.0, told)
    assert "configuration not reloaded, the old one stays in force:" in said()
    assert WEAK_KEY not in said()
    assert (await it.ask("s")).status_code == 200
    assert await it.weights() == {"a": 50, "b": 50}
