"""The composition root: settings become parts, parts become an application.

This is the only module that knows every room; rooms get what they need from here.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Mapping, Sequence
from pathlib import Path

from fastapi import FastAPI
from prometheus_client import CollectorRegistry, PlatformCollector, ProcessCollector
from starlette.types import ASGIApp

from gateway.admin import api, changes
from gateway.admission.gate import Gate
from gateway.edge.asgi import FrontDoor
from gateway.edge.cold import add_routes
from gateway.edge.cors import Cors
from gateway.edge.paths import HotPaths
from gateway.engines.engines import Engines
from gateway.exchange.context import Context, request_ids
from gateway.exchange.pins import Pins
from gateway.keys.keyring import Key, KeyRing
from gateway.keys.limits import Limiter, Standing
from gateway.records import Record
from gateway.routing.backend import Backend
from gateway.routing.health import HttpProbe, Prober
from gateway.routing.table import Route, Table
from gateway.routing.weights import WeightBook
from gateway.settings import Settings
from gateway.state.store import Store, Switch, WeightChange
from gateway.telemetry.access_log import AccessLog
from gateway.telemetry.by_key import KeyUse
from gateway.telemetry.metrics import Metrics
from gateway.telemetry.recent import Recent
from gateway.telemetry.traces import start as traces
from gateway.upstream.clients import Clients
from gateway.upstream.pool import Pool


class Gateway:
    """Every part of a running gateway, and how a new configuration replaces the one in force.

    Args:
        settings: already validated.
        access_log: the file for the access log; None for standard output.
        brief: has lines for people there, instead of JSON.
        clock: monotonic seconds.
    """

    def __init__(
        self,
        settings: Settings,
        access_log: Path | None = None,
        brief: bool = False,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.registry = CollectorRegistry()
        ProcessCollector(registry=self.registry)
        PlatformCollector(registry=self.registry)
        self._traces = traces.start(settings.traces, self.registry)
        self.metrics = Metrics(self.registry)
        self.recent = Recent()
        self.paths = HotPaths()
        self.store = Store(settings.database_url)
        self.store.open()
        self.weights = WeightBook(self.store)
        # What is in force follows the database before anyone else may change it.
        self.changing = asyncio.Lock()
        self.access_log = AccessLog(access_log, self.registry, brief=brief)
        self._clock = clock
        self._gates: dict[str, Gate] = {}
        self._pools: dict[Backend, Pool] = {}
        self.weights.follow(settings.models)
        self.context = Context(
            settings=settings,
            keyring=KeyRing(settings.keys),
            table=Table(settings, clock),
            limiter=Limiter(clock),
            pins=Pins(),
            gate_of=self._gate_of,
            pool_of=self._pool_of,
            record=self._record,
            clock=clock,
            wall_clock=time.time,
            new_id=request_ids(),
            trace=self._traces.begin if self._traces else None,
        )
        self._take_over(self.store.disabled_backends())

    async def reload(self, settings: Settings) -> list[str]:
        """Put another configuration in force, as a whole, for requests that come from now on, and
        say what it changes, a line each. What `admin.changes.AT_START` names has to wait.

        Raises:
            ConfigError, StateFailed: the database cannot be used; what was in force stays.
        """
        async with self.changing:
            # In threads: whoever else has the file locked must not hold up open streams.
            disabled = await asyncio.to_thread(self.keep, settings)
            changed = await asyncio.to_thread(changes.changes, self.context.settings, settings)
            self.put_in_force(settings, disabled)
            return changed

    def keep(self, settings: Settings) -> Collection[str]:
        """What of a reload blocks and may fail; returns the backends taken out."""
        disabled = self.store.disabled_backends()
        self.weights.follow(settings.models)
        return disabled

    def put_in_force(self, settings: Settings, disabled: Collection[str]) -> None:
        """The rest of a reload. It may not fail: the table changes what is in force in place."""
        self.context.settings = changes.in_force(self.context.settings, settings)
        self.context.keyring = KeyRing(settings.keys)
        self.context.table = Table(settings, self._clock, previous=self.context.table)
        self._take_over(disabled)

    def drain(self) -> None:
        """From now on answers close their connections and `/ready` is 503."""
        self.context.draining = True

    def close(self) -> None:
        """Close connections, the database and the log, and send the last spans."""
        for pool in self._pools.values():
            pool.close()
        self.access_log.close()
        if self._traces is not None:
            self._traces.close()
        self.store.close()

    async def watch_health(self, probe_timeout: float = 2.0) -> None:
        """Probe the backends, and ask those that are up for their facts; until cancelled."""
        clients = Clients()
        probe = HttpProbe(clients, probe_timeout)
        engines = Engines(self._upstream_model, self._backends_of, self.metrics.own, clients)
        async with contextlib.aclosing(clients), engines:

            async def check(backend: Backend) -> bool:
                healthy = await probe(backend)
                if healthy:
                    engines.healthy(backend)
                return healthy

            await Prober(self._backends, check, self._changed, timeout=probe_timeout).run()

    def wake(self) -> None:
        """Ask all waiting requests again: what is usable has changed."""
        for gate in self._gates.values():
            gate.wake()

    def follow_weights(self, model: str) -> None:
        """Have the split follow the weight book."""
        route = self.context.table.routes.get(model)
        if route is not None:
            weights = self.weights.of(model)
            route.set_weights(weights.effective, weights.revision)
            self.wake()

    def _take_over(self, disabled: Collection[str]) -> None:
        """Have every part follow the table that is in force now."""
        table, admission = self.context.table, self.context.settings.admission
        for backend in table.backends.values():
            backend.enabled = backend.name not in disabled
        self._close_pools(self.context.settings.timeouts.connect)
        for gate in self._gates.values():
            gate.queue_limit, gate.queue_timeout = admission.queue_limit, admission.queue_timeout
        self.metrics.use(table, self.context.keyring.keys)
        for model in table.routes:
            self.follow_weights(model)
        self.wake()

    def _close_pools(self, connect_timeout: float) -> None:
        """Have new connections follow the table and the settings in force now.

        Requests under way keep the connection they have.
        """
        backends = self.context.table.backends
        for backend, pool in list(self._pools.items()):
            if backends.get(backend.name) is not backend or pool.connect_timeout != connect_timeout:
                self._pools.pop(backend).close()

    def _upstream_model(self, model: str) -> str:
        settings = self.context.settings.models.get(model)
        return (settings and settings.upstream_model) or model

    def _backends(self) -> list[Backend]:
        return list(self.context.table.backends.values())

    def _backends_of(self, model: str) -> list[Backend]:
        return [one for one in self._backends() if one.model == model]

    def _changed(self, backend: Backend) -> None:
        if backend.model in self._gates:
            self._gates[backend.model].wake()

    def _gate_of(self, route: Route) -> Gate:
        gate = self._gates.get(route.model)
        if gate is None:
            admission = self.context.settings.admission
            gate = Gate(admission.queue_limit, admission.queue_timeout, self._clock)
            self._gates[route.model] = gate
        return gate

    def _pool_of(self, backend: Backend) -> Pool:
        pool = self._pools.get(backend)
        if pool is None:
            connect = self.context.settings.timeouts.connect
            pool = Pool(backend.url, connect_timeout=connect, proxy=backend.settings.proxy)
            self._pools[backend] = pool
        return pool

    def _record(self, record: Record) -> None:
        self.metrics.observe(record)
        self.recent.add(record)
        self.access_log.write(record)
        if self._traces is not None:
            self._traces.add(record)


class LiveControl:
    """A running gateway as the admin API sees it: `admin.control.Control`.

    Writes to the database run in a thread, since they wait for the disk.
    """

    def __init__(self, gateway: Gateway, reload: Callable[[], Awaitable[Settings]]) -> None:
        self._gateway = gateway
        self._reload = reload

    @property
    def settings(self) -> Settings:
        return self._gateway.context.settings

    @property
    def table(self) -> Table:
        return self._gateway.context.table

    def find(self, request_id: str) -> Record | None:
        return self._gateway.recent.get(request_id)

    def standings(self) -> Sequence[tuple[Key, Standing, KeyUse]]:
        context, use = self._gateway.context, self._gateway.metrics.by_key.totals()
        return [(one, context.limiter.standing(one), use[one.name]) for one in context.keyring.keys]

    async def set_weights(
        self,
        model: str,
        weights: Mapping[str, float],
        *,
        revision: int | None,
        reason: str,
        by: str,
    ) -> None:
        book = self._gateway.weights
        async with self._gateway.changing:
            await asyncio.to_thread(book.set, model, weights, revision, reason, by)
            self._gateway.follow_weights(model)

    async def set_enabled(self, backend: str, enabled: bool, *, by: str) -> None:
        switch = Switch(enabled, by, time.time())
        async with self._gateway.changing:
            await asyncio.to_thread(self._gateway.store.switch_backend, backend, switch)
            live = self.table.backends.get(backend)
            if live is not None:
                live.enabled = enabled
        self._gateway.wake()

    async def history(self, model: str | None, limit: int) -> Sequence[WeightChange]:
        return await asyncio.to_thread(self._gateway.weights.history, model, limit)

    async def reload(self) -> Settings:
        return await self._reload()


def create_app(gateway: Gateway, reload: Callable[[], Awaitable[Settings]]) -> ASGIApp:
    """The ASGI application of a gateway, for any server.

    Args:
        reload: reads the configuration anew and puts it in force; raises ConfigError.
    """

    @contextlib.asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        health = asyncio.create_task(gateway.watch_health())
        try:
            yield
        finally:
            health.cancel()
            await asyncio.gather(health, return_exceptions=True)
            gateway.close()

    app = FastAPI(lifespan=lifespan, docs_url=None, redoc_url=None, openapi_url=None)
    app.add_middleware(Cors, context=gateway.context)
    add_routes(app, gateway.context, gateway.metrics.render)
    app.include_router(api.router(LiveControl(gateway, reload)))
    return FrontDoor(app, gateway.context, gateway.paths)
