"""Follows what engines count of their work, beside what the gateway counted of it."""

from __future__ import annotations

import asyncio
import math
import time
from collections import deque
from collections.abc import Callable, MutableMapping
from typing import Protocol
from weakref import WeakKeyDictionary

import httpx

from gateway.engines.http import LONGEST_PAGE, EngineHttp, Reachable
from gateway.engines.parts import Own, Sample, between, restarted
from gateway.records import EngineFacts, TtftParts
from gateway.vllm.page import EnginePage, read_page


class Followed(Reachable, Protocol):
    """A backend whose engine is followed."""

    @property
    def name(self) -> str: ...

    facts: EngineFacts | None
    ttft_parts: TtftParts | None


class EngineWork:
    """Keeps a backend's `ttft_parts`: of the last `samples` scrapes of its engine.

    Args:
        own: the gateway's sums for the backend of this name.
        interval: seconds between scrapes of one engine, at least.
        samples: scrapes that make up the window.
        clock: monotonic seconds.
    """

    def __init__(
        self,
        http: EngineHttp,
        own: Callable[[str], Own],
        *,
        interval: float = 15.0,
        samples: int = 21,
        timeout: float = 5.0,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._http = http
        self._own = own
        self._interval = interval
        self._samples = samples
        self._timeout = timeout
        self._clock = clock
        self._windows: MutableMapping[Followed, deque[Sample]] = WeakKeyDictionary()
        self._asked: MutableMapping[Followed, float] = WeakKeyDictionary()

    def due(self, backend: Followed) -> bool:
        """Whether an engine's scrape is due; the answer yes counts as its beginning."""
        now = self._clock()
        if now - self._asked.get(backend, -self._interval) < self._interval:
            return False
        self._asked[backend] = now
        return True

    def forget(self, backend: Followed) -> None:
        """Its engine has come up anew: what was counted, or not told, before says nothing."""
        self._asked.pop(backend, None)
        self._windows.pop(backend, None)
        backend.ttft_parts = None

    async def scrape(self, backend: Followed) -> None:
        """Take one sample. An engine that does not answer gives none; a server that has no page
        of vLLM's is not asked again."""
        try:
            async with asyncio.timeout(self._timeout):
                body = await self._http.get(backend, "/metrics", LONGEST_PAGE)
                # In a thread: streams must not wait while a long page is read.
                page = await asyncio.to_thread(read_page, body.decode()) if body else None
        except (httpx.HTTPError, httpx.InvalidURL, TimeoutError, ValueError):
            return
        if page is None:
            self._asked[backend] = math.inf
            return
        self._add(backend, page)

    def _add(self, backend: Followed, page: EnginePage) -> None:
        window = self._windows.setdefault(backend, deque(maxlen=self._samples))
        if window and restarted(window[-1].engine, page):
            # It may have come up with another configuration, between two probes.
            backend.facts = None
            self.forget(backend)
            return
        window.append(Sample(self._clock(), self._own(backend.name), page))
        backend.ttft_parts = between(window[0], window[-1])
