"""One stage: an agent with a home of its own, a gateway, and scripted engines behind it."""

from __future__ import annotations

import asyncio
import os
import shlex
import signal
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Any

from gateway.app import Gateway
from gateway.cli.connect.userfiles import Home, apply
from gateway.clients.setup import Setup, Target
from gateway.records import Api, Record
from tests.real_clients.agents import Agent
from tests.real_clients.backend import Asked, Engine, Kind, engine
from tests.real_clients.steps import Step
from tests.support.running import KEY, Running, configuration, running

NOWHERE = "http://127.0.0.1:9"
"""A closed port, as the proxy for everything but loopback: nothing can leave the machine."""


Templates = dict[tuple[str, str, str], dict[str, str]]
"""Files that the commands of a set-up have written, for an agent, key and model; the gateway
stands in them as `NOWHERE`."""


@dataclass(frozen=True)
class Ran:
    """What came of one run of an agent.

    Attributes:
        seconds: from start to end, start-up of the agent included.
    """

    code: int
    out: str
    err: str
    seconds: float

    @property
    def said(self) -> str:
        return self.out + self.err


@dataclass
class Stage:
    """Attributes:
    folder: where the agent works, empty at first.
    """

    agent: Agent
    gateway: Running
    engines: list[Engine]
    folder: Path
    variables: dict[str, str]

    async def run(self, prompt: str, *, again: bool = False, timeout: float = 240) -> Ran:
        """Have the agent work on a prompt; it is killed, with its children, after `timeout` s."""
        return await self.start(self.agent.command(prompt, again=again), timeout)

    @property
    def asked(self) -> list[Asked]:
        """Requests for an answer, as the engines got them; engine by engine."""
        return [one for each in self.engines for one in each.asked]

    @property
    def records(self) -> list[Record]:
        """Requests for an answer, as the gateway saw them, in the order in which they ended."""
        return [one for one in self.gateway.records if one.api is not Api.OTHER]

    @property
    def told(self) -> list[int]:
        """The statuses of the answers to them."""
        return [one.status for one in self.records]

    async def requests(self) -> int:
        """How many requests for an answer the agent has made, once the gateway is done with it."""
        await self.gateway.settle()
        return len(self.records)

    async def start(self, command: Sequence[str], timeout: float) -> Ran:
        """Run a command as the agent's user would; it is killed, with its children, in the end."""
        began = time.monotonic()
        child = await asyncio.create_subprocess_exec(
            *command,
            cwd=self.folder,
            env=self.variables,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            start_new_session=True,
        )
        try:
            out, err = await asyncio.wait_for(child.communicate(), timeout)
        finally:
            end(child.pid)
            await child.wait()
        seconds = time.monotonic() - began
        return Ran(child.returncode or 0, out.decode(), err.decode(), seconds)


def end(group: int) -> None:
    """End what an agent has left behind: it was started as a group of its own."""
    with suppress(ProcessLookupError):
        os.killpg(group, signal.SIGKILL)


def end_all(homes: Path) -> None:
    """End what has left its group, such as a daemon that an agent starts for those to come.

    Args:
        homes: the folder that the agents' homes are in.
    """
    for environ in Path("/proc").glob("[0-9]*/environ"):
        with suppress(OSError):  # it has ended, or is somebody else's
            if f"\0HOME={homes}/".encode() in b"\0" + environ.read_bytes():
                os.kill(int(environ.parent.name), signal.SIGKILL)


@asynccontextmanager
async def stage(
    agent: Agent,
    programs: Path,
    folder: Path,
    kind: Kind,
    *scripts: Sequence[Step],
    templates: Templates,
    key: str = KEY,
    model: str = "m",
    **changes: Any,
) -> AsyncIterator[Stage]:
    """Start everything, with the agent set up, and end it again.

    Args:
        programs: the folder of the agents' commands.
        folder: for everything that is written.
        scripts: one engine each, the only one of its arm.
        templates: of files, from earlier stages.
        key, model: what the agent is told.
        changes: sections of the gateway's configuration.
    """
    home, work = folder / "home", folder / "work"
    home.mkdir(parents=True)
    work.mkdir()
    async with AsyncExitStack() as stack:
        engines = [await stack.enter_async_context(engine(kind, *one)) for one in scripts]
        # A dozen agents that start at once leave this process late for everything.
        patient = {"timeouts": {"connect": 30}}
        base = configuration(folder, *(one.url for one in engines), **patient, **changes)
        gateway = await stack.enter_async_context(running(base, folder, prepare=_patient))
        agent.prepare(home)
        setup = _set_up(agent, home, Target(gateway.url, key, model))
        variables = {
            "PATH": f"{programs}:{os.environ['PATH']}",
            "HOME": str(home),
            "TERM": "dumb",
            "HTTP_PROXY": NOWHERE,
            "HTTPS_PROXY": NOWHERE,
            "NO_PROXY": "127.0.0.1,localhost",
        } | agent.quiet
        it = Stage(agent, gateway, engines, work, variables)
        await _tell(it, setup, home, templates.setdefault((agent.profile.name, key, model), {}))
        yield it


async def _tell(stage: Stage, setup: Setup, home: Path, template: dict[str, str]) -> None:
    """Run the commands of a set-up, or write what they have written the first time.

    They cost as much time as many a case.
    """
    url = stage.gateway.url
    for file, text in template.items():
        (home / file).parent.mkdir(parents=True, exist_ok=True)
        (home / file).write_text(text.replace(NOWHERE, url))
    for command in () if template else setup.commands:
        ran = await stage.start(shlex.split(command), 60)
        assert ran.code == 0, ran.said
        for file, text in stage.agent.learned(home).items():
            assert url in text, text
            template[file] = text.replace(url, NOWHERE)


def _patient(gateway: Gateway) -> None:
    """A dozen agents that start at once leave this process no time to answer its own probes."""
    watch = partial(gateway.watch_health, probe_timeout=60.0)
    gateway.watch_health = watch  # type: ignore[method-assign]  # of this one only


def _set_up(agent: Agent, home: Path, target: Target) -> Setup:
    """As `gateway connect --write` does; its commands are left to be run."""
    user = Home(home, {})
    setup = agent.profile.setup(target, user.read)
    assert setup.files or setup.commands
    for file in setup.files:
        apply(user.change(file), datetime.now())
    return setup
