"""Starts everything, drives traffic, shows it, and stops everything again."""

from __future__ import annotations

import asyncio
import contextlib
import signal
import tempfile
from pathlib import Path

import httpx
import yaml
from rich.console import Console
from rich.live import Live

from gateway.demo.children import Child
from gateway.demo.plan import CHUNKS, MODEL, Plan
from gateway.demo.screen import introduce, render
from gateway.demo.tally import Tally
from gateway.demo.traffic import Traffic
from gateway.errors import GatewayError

REFRESH = 0.25
LOG_DELAY = 5.0
"""Seconds the access log may take to hold the last request."""

STOPPING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class Demo:
    """One run.

    Args:
        requests: after how many it ends; None for when a signal comes.
        concurrency: conversations at a time.
        console: where the table goes.
        web: start the web console, too.

    Attributes:
        tally: what was measured, once the gateway runs.
        children: the processes started.
    """

    def __init__(
        self,
        plan: Plan,
        *,
        requests: int | None,
        concurrency: int,
        console: Console,
        web: bool,
    ) -> None:
        self.tally: Tally | None = None
        self.children: list[Child] = []
        self._plan = plan
        self._requests = requests
        self._concurrency = concurrency
        self._console = console
        self._web = web
        self._web_url: str | None = None

    async def run(self) -> None:
        """Run until the requests are done or a signal of `STOPPING` comes.

        Raises:
            GatewayError: something did not start, or ended early.
        """
        stop = asyncio.Event()
        for name in STOPPING:
            asyncio.get_running_loop().add_signal_handler(name, stop.set)
        stopped = asyncio.create_task(stop.wait())
        with tempfile.TemporaryDirectory(prefix="gateway-demo-") as folder:
            work = asyncio.create_task(self._work(Path(folder)))
            try:
                await asyncio.wait((work, stopped), return_when=asyncio.FIRST_COMPLETED)
                work.cancel()
                with contextlib.suppress(asyncio.CancelledError):
                    await work
            finally:
                stopped.cancel()
                # The gateway first: engines that vanish under it would look like failures.
                for child in reversed(self.children):
                    child.stop()
                if self.tally is not None:
                    # The last lines of the log, written when the gateway ended.
                    self.tally.follow()
                if not self._console.is_terminal:
                    # Where the table is printed once, its last line is left open. Last of all,
                    # since it fails if nobody reads on.
                    self._console.line()

    async def _work(self, folder: Path) -> None:
        url = await self._start(folder)
        headers = {"authorization": f"Bearer {self._plan.key}"}
        limits = httpx.Limits(max_connections=None, max_keepalive_connections=None)
        # Certificates are not needed within the machine, and take a while to load.
        async with httpx.AsyncClient(
            base_url=url,
            headers=headers,
            limits=limits,
            timeout=None,
            trust_env=False,
            verify=False,
        ) as client:
            traffic = Traffic(client, concurrency=self._concurrency, limit=self._requests)
            driving = asyncio.create_task(traffic.run())
            try:
                await self._show(url, client, driving)
            except httpx.HTTPError as error:
                raise self._explained(error) from error
            finally:
                driving.cancel()
                # Its failure is told already, or comes of what is told: asyncio shall not tell it.
                await asyncio.gather(driving, return_exceptions=True)

    async def _start(self, folder: Path) -> str:
        """Start the engines, then the gateway before them; where the gateway listens."""
        self._console.print("Starting two simulated engines and the gateway …")
        key = {"VLLM_API_KEY": self._plan.engine_key}
        engines = {
            arm: self._spawn(f"engine {arm}", self._plan.engine_arguments(arm), folder, key)
            for arm in CHUNKS
        }
        ports = {arm: await engine.port() for arm, engine in engines.items()}
        configuration = self._plan.configuration(ports, str(folder / "gateway.db"))
        (folder / "gateway.yaml").write_text(yaml.safe_dump(configuration, sort_keys=False))
        log = folder / "access.jsonl"
        arguments = ["serve", "-c", str(folder / "gateway.yaml"), "--access-log", str(log)]
        port = await self._spawn("gateway", arguments, folder, {}).port()
        self.tally = Tally(log, CHUNKS)
        url = f"http://127.0.0.1:{port}"
        if self._web:
            self._web_url = await self._start_console(url, folder)
        return url

    async def _start_console(self, url: str, folder: Path) -> str:
        """Where the web console listens."""
        key = {"GATEWAY_KEY": self._plan.key}
        console = self._spawn("console", self._plan.console_arguments(url), folder, key)
        return f"http://127.0.0.1:{await console.port()}"

    def _spawn(
        self, name: str, arguments: list[str], folder: Path, environment: dict[str, str]
    ) -> Child:
        child = Child(name, arguments, folder / f"{name}.log", environment)
        self.children.append(child)
        return child

    async def _show(self, url: str, client: httpx.AsyncClient, driving: asyncio.Task[None]) -> None:
        """Keep the table true until all requests are sent, answered and logged.

        Raises:
            httpx.HTTPError: the gateway cannot be reached.
            GatewayError: likewise, or a child has ended, or requests are missing from the log.
        """
        tally = self.tally
        assert tally is not None
        late = 0.0
        introduction = introduce(self._plan, url, self._web_url)
        self._console.print(introduction, soft_wrap=True, markup=False, highlight=False)
        with Live(console=self._console, auto_refresh=False) as live:
            while True:
                weights = await self._weights(client)
                tally.follow()
                live.update(render(self._plan, tally, weights), refresh=True)
                if driving.done():
                    self._check(driving)
                    if tally.requests == self._requests:
                        return
                    late += REFRESH
                    self._check_log(tally, late)
                for child in self.children:
                    child.check()
                await asyncio.sleep(REFRESH)

    def _check(self, driving: asyncio.Task[None]) -> None:
        """Raises:
        GatewayError: the traffic ended because the gateway could not be reached.
        """
        failure = driving.exception()
        if failure is not None:
            raise self._explained(failure) from failure

    def _check_log(self, tally: Tally, late: float) -> None:
        if late > LOG_DELAY:
            raise GatewayError(
                f"{self._requests} requests were sent, but the gateway logged {tally.requests}."
            )

    def _explained(self, error: BaseException) -> GatewayError:
        """A child that has ended explains more than the connection it broke."""
        try:
            for child in self.children:
                child.check()
        except GatewayError as found:
            return found
        return GatewayError(f"The demo's own requests failed: {error!r}")

    async def _weights(self, client: httpx.AsyncClient) -> dict[str, float]:
        """In force now: they can be changed while the demo runs."""
        headers = {"authorization": f"Bearer {self._plan.admin_key}"}
        answer = await client.get(f"/admin/v1/models/{MODEL}", headers=headers)
        arms = answer.raise_for_status().json()["arms"]
        return {arm["name"]: arm["weight"] for arm in arms}
