"""What engines say of themselves during a round: cache hits, KV usage, preemptions.

Pages are fetched while the round runs and read when it is over: reading one takes as long as some
tokens do, and would delay their stamps.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from dataclasses import dataclass, field

from gateway.bench.results import EngineUse
from gateway.vllm.page import EnginePage, read_page

INTERVAL = 0.25
"""Seconds between two looks at the KV usage; a peak between them is not seen."""

NO_VLLM = "its /metrics is no vLLM engine's"
UNREACHABLE = "its /metrics could not be read"

Fetch = Callable[[str], Awaitable[bytes | None]]
"""GETs a URL; None where that failed."""


@dataclass(frozen=True, slots=True)
class Engine:
    """One engine to look at.

    Attributes:
        arm: which arm it serves; empty where that is not known.
    """

    name: str
    url: str
    arm: str = ""


@dataclass(slots=True)
class _Seen:
    """The pages of one engine in a round: the first, some of what came between, the last."""

    before: bytes | None = None
    between: list[bytes] = field(default_factory=list)
    after: bytes | None = None


class Engines:
    """Watches engines; its shape is `rounds.EngineWatch`."""

    def __init__(self, engines: Sequence[Engine], fetch: Fetch, interval: float = INTERVAL) -> None:
        self._engines = engines
        self._fetch = fetch
        self._interval = interval
        self._seen: dict[str, _Seen] = {}

    @contextlib.asynccontextmanager
    async def watching(self, arm: str) -> AsyncIterator[None]:
        """Look before, during and after a round of this arm, at its engines only."""
        chosen = [one for one in self._engines if one.arm in ("", arm) or not arm]
        self._seen = {one.name: _Seen() for one in chosen}
        pages = await self._pages(chosen)
        for one in chosen:
            self._seen[one.name].before = pages[one.name]
        polling = asyncio.create_task(self._poll(chosen))
        try:
            yield
        finally:
            polling.cancel()
            await asyncio.gather(polling, return_exceptions=True)
        pages = await self._pages(chosen)
        for one in chosen:
            self._seen[one.name].after = pages[one.name]

    def uses(self) -> tuple[EngineUse, ...]:
        """Of the latest round."""
        return tuple(
            self._use(one, self._seen[one.name]) for one in self._engines if one.name in self._seen
        )

    async def _poll(self, engines: Sequence[Engine]) -> None:
        while True:
            await asyncio.sleep(self._interval)
            for name, page in (await self._pages(engines)).items():
                if page is not None:
                    self._seen[name].between.append(_usage_lines(page))

    async def _pages(self, engines: Sequence[Engine]) -> dict[str, bytes | None]:
        found = await asyncio.gather(*(self._fetch(f"{one.url}/metrics") for one in engines))
        return {one.name: page for one, page in zip(engines, found, strict=True)}

    def _use(self, engine: Engine, seen: _Seen) -> EngineUse:
        if seen.before is None or seen.after is None:
            return EngineUse(name=engine.name, arm=engine.arm, absent=UNREACHABLE)
        before, after = _state(seen.before), _state(seen.after)
        if before is None or after is None:
            return EngineUse(name=engine.name, arm=engine.arm, absent=NO_VLLM)
        between = [state for page in seen.between if (state := _state(page)) is not None]
        usages = [state.kv_usage for state in (before, *between, after)]
        return EngineUse(
            name=engine.name,
            arm=engine.arm,
            hit_rate=_hit_rate(before, after),
            kv_usage_peak=max((usage for usage in usages if usage is not None), default=None),
            preemptions=_grown(before.preemptions, after.preemptions),
            requests=_grown(before.finished, after.finished),
        )


def _state(page: bytes) -> EnginePage | None:
    try:
        return read_page(page.decode(errors="replace"))
    except ValueError:
        return None


def _usage_lines(page: bytes) -> bytes:
    """Of a page between the first and the last, what is needed: a long run has many."""
    return b"".join(line for line in page.splitlines(keepends=True) if b"cache_usage_perc" in line)


def _hit_rate(before: EnginePage, after: EnginePage) -> float | None:
    """Of this round; of engines that state a rate alone (0.6), what they state at its end."""
    if after.queried is None:
        return after.hit_rate
    queried, hit = _grown(before.queried, after.queried), _grown(before.hit, after.hit)
    return hit / queried if queried and hit is not None else None


def _grown(before: float | None, after: float | None) -> float | None:
    """How much a counter has grown; None where it is not told, or began anew in between."""
    if before is None or after is None or after < before:
        return None
    return after - before
