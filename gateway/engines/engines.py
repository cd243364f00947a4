"""Keeps what is known of each engine current, beside the health probes."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine, Iterable
from types import TracebackType
from typing import Protocol, Self

import httpx
import msgspec

from gateway.engines.facts import Asked, Interview
from gateway.engines.http import ClientOf, EngineHttp
from gateway.engines.parts import Own
from gateway.engines.work import EngineWork, Followed
from gateway.records import EngineFacts
from gateway.settings.claims import differences, drift

log = logging.getLogger(__name__)


class Watched(Asked, Followed, Protocol):
    """A backend whose engine is asked for its facts when it comes up, and then followed."""

    arm: str
    facts: EngineFacts | None
    probe_failures: int

    @property
    def apis(self) -> frozenset[str] | None: ...


class Engines:
    """Asks an engine for its facts each time it has come up, and scrapes it while it stays up.

    An engine that is slow to tell is none that is down, and it is asked one thing at a time.

    Args:
        upstream_model: what engines call the model of this id.
        peers: all backends of the model of this id.
        own: the gateway's sums for the backend of this name.
        client_of: the client that reaches a backend.
        timeout: seconds a question may take.
    """

    def __init__(
        self,
        upstream_model: Callable[[str], str],
        peers: Callable[[str], Iterable[Watched]],
        own: Callable[[str], Own],
        client_of: ClientOf,
        timeout: float = 5.0,
    ) -> None:
        self._upstream_model = upstream_model
        self._peers = peers
        self._http = EngineHttp(client_of, timeout)
        self._interview = Interview(self._http, timeout)
        self._work = EngineWork(self._http, own, timeout=timeout)
        self._open: dict[Watched, asyncio.Task[None]] = {}
        self._told: dict[str, str] = {}

    def healthy(self, backend: Watched) -> None:
        """A health probe has succeeded; the failures before it still stand in `backend`."""
        if backend in self._open:
            return
        if backend.facts is None or backend.probe_failures > 0:
            self._begin(backend, self._learn(backend))
        elif self._work.due(backend):
            self._begin(backend, self._work.scrape(backend))

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        tasks = list(self._open.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def _begin(self, backend: Watched, question: Coroutine[None, None, None]) -> None:
        task = self._open[backend] = asyncio.create_task(question)
        task.add_done_callback(lambda _: self._open.pop(backend))

    async def _learn(self, backend: Watched) -> None:
        self._work.forget(backend)
        try:
            model = self._upstream_model(backend.model)
            backend.facts = await self._interview.facts(backend, model)
        except (httpx.HTTPError, httpx.InvalidURL, TimeoutError):
            backend.facts = None  # so that the next probe that succeeds is the next occasion
            return
        scheduler = await self._interview.scheduler(backend)
        facts = backend.facts
        if facts is None:
            return  # a reload has made it somebody else's engine
        backend.facts = msgspec.structs.replace(
            facts,
            max_num_batched_tokens=scheduler.max_num_batched_tokens,
            max_num_seqs=scheduler.max_num_seqs,
        )
        self._check(backend, backend.facts)

    def _check(self, backend: Watched, facts: EngineFacts) -> None:
        """Warn of an engine that is not what the configuration, or its arm, takes it for."""
        found = "; ".join(str(one) for one in differences(backend.settings.engine, facts))
        self._warn(backend.name, found and f"backend {backend.name} is not as declared: {found}")
        peers = list(self._peers(backend.model))
        alike = {one.name: one.facts for one in peers if one.arm == backend.arm and one.facts}
        arm = f"arm {backend.arm} of model {backend.model}"
        found = "; ".join(drift(alike))
        self._warn(arm, found and f"the backends of {arm} do not run alike: {found}")
        self._compare(backend.model, peers)

    def _compare(self, model: str, peers: Iterable[Watched]) -> None:
        """Warn of a model whose backends do not offer the same APIs."""
        known = {one.name: one.apis for one in peers if one.apis is not None}
        told = "; ".join(f"{name}: {', '.join(sorted(apis))}" for name, apis in known.items())
        warning = (
            f"the backends of model {model} do not offer the same APIs ({told}): "
            "requests for an API that one lacks go to the others, or are translated for it"
        )
        self._warn(f"model {model}", warning if len(set(known.values())) > 1 else "")

    def _warn(self, subject: str, warning: str) -> None:
        """Say it once, and again when it has changed; an empty one is nothing to warn of."""
        if warning and self._told.get(subject) != warning:
            log.warning("%s", warning)
        self._told[subject] = warning
