"""Cache and memory of an engine, from its `/metrics`.

Counters run since the engine's start, so a change of traffic shows late in them; two scrapes some
seconds apart tell of these seconds alone.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from gateway.cli.asking import Unanswered
from gateway.cli.doctor.case import Case
from gateway.cli.doctor.chunks import Chunks, caching_off
from gateway.cli.doctor.finding import Finding, Topic
from gateway.cli.doctor.servers import Server, ask
from gateway.vllm.page import EnginePage, read_page

LOW_HIT_RATE = 0.80
"""Below it the cache does not fit the traffic."""

FULL_MEMORY = 0.95
"""Above it blocks are evicted all the time, between two requests of one conversation, too."""

ENOUGH_QUERIES = 10_000
"""Tokens looked up in the cache before its hit rate says anything."""

ENOUGH_REQUESTS = 20
"""As well: a conversation's first turn finds nothing, however good the cache."""

WATCH = 5.0
"""Seconds between two scrapes where nobody says how many, and an engine is at work."""

_JITTER = "so the same prompt is fast once and slow the next time"


@dataclass(frozen=True, slots=True)
class Look:
    """What an engine's metrics said.

    Attributes:
        state: at the last scrape; None where there was none to read.
        fault: why there was none.
        lately: what was counted between two scrapes.
        seconds: between the two.
    """

    state: EnginePage | None
    fault: str = ""
    lately: EnginePage | None = None
    seconds: float = 0.0

    def period(self, *, judged: bool) -> tuple[EnginePage, str] | None:
        """The counters to go by, and of when they are.

        Args:
            judged: only where they are enough to judge a hit rate by.
        """
        for state, when in ((self.lately, f"in the last {self.seconds:g} s"), (self.state, "")):
            if state is not None and (not judged or _enough(state)):
                return state, when or "since its start"
        return None


def looks(case: Case, servers: Iterable[Server]) -> dict[str, Look]:
    """Every server's metrics, by name; all wait for the second scrape together."""
    asked = list(servers)
    first = {server.name: _look(case, server) for server in asked}
    states = [look.state for look in first.values() if look.state is not None]
    busy = any(state.busy for state in states)
    seconds = case.watch if case.watch is not None else (WATCH if busy else 0.0)
    if not seconds or not states:
        return first
    case.sleep(seconds)
    return {server.name: _again(case, server, first[server.name], seconds) for server in asked}


def findings(topic: Topic, server: Server, look: Look, chunks: Chunks) -> Iterator[Finding]:
    """Cache and memory of one server."""
    if look.state is None:
        yield topic.warning(
            f"{server.name}: its metrics could not be read from here ({look.fault}).",
            "Cache and memory were not checked.",
            f"curl -s {server.url}/metrics | grep -E 'prefix_cache|kv_cache|preemptions'",
        )
        return
    if look.state.cache.prefix_caching is not False:
        block = look.state.cache.block_size or chunks.known.block_size
        yield from _cache(topic, server, look, block)
    elif not chunks.caching_off:
        yield caching_off(topic, server, "is off, as the engine says")
    yield from _memory(topic, server, look, look.state)


def _look(case: Case, server: Server) -> Look:
    reply = ask(case, server, "/metrics")
    if isinstance(reply, Unanswered):
        return Look(None, reply.detail)
    if not reply.ok:
        return Look(None, f"HTTP {reply.status}")
    try:
        state = read_page(reply.text)
    except ValueError:
        state = None
    return Look(state, "" if state else "no vLLM metrics")


def _again(case: Case, server: Server, first: Look, seconds: float) -> Look:
    second = _look(case, server) if first.state else first
    if first.state is None or second.state is None:
        return first
    return Look(second.state, "", second.state.since(first.state), seconds)


def _enough(state: EnginePage) -> bool:
    return (state.queried is None or state.queried >= ENOUGH_QUERIES) and (
        state.finished is None or state.finished >= ENOUGH_REQUESTS
    )


def _cache(topic: Topic, server: Server, look: Look, block: int | None) -> Iterator[Finding]:
    period = look.period(judged=True)
    if period is None or look.state is None:
        return
    counted, when = period
    if counted.hit_rate is None or counted.hit_rate >= LOW_HIT_RATE:
        return
    why, fix = _cause(look.state, counted, block)
    if counted is not look.lately:
        why += " Whether it is so now, gateway doctor --only ttft --watch 30 tells."
    yield topic.warning(
        f"{server.name}: {100 * counted.hit_rate:.0f} % of prompt tokens were found in the "
        f"prefix cache {when}, below {100 * LOW_HIT_RATE:.0f} %.",
        why,
        fix,
    )


def _cause(now: EnginePage, counted: EnginePage, block: int | None) -> tuple[str, str]:
    """Why little is found, the likeliest cause first, once it is not that caching is off."""
    prompt = counted.mean_prompt
    if block is not None and prompt is not None and prompt < block:
        return (
            f"Its prompts have {prompt:.0f} tokens on average, less than a block of {block}, and "
            "only whole blocks are found again.",
            "--block-size 16   # where the engine is started",
        )
    if (now.kv_usage or 0) > FULL_MEMORY or counted.preemptions:
        return (
            f"The cache is too small for the traffic: blocks are evicted before they are asked "
            f"for again, {_JITTER}.",
            "--gpu-memory-utilization 0.92   # where the engine is started",
        )
    return (
        "There is room in the cache and prompts are longer than a block, so they share little: "
        "they differ early, such as by a date in their first line, or are single questions.",
        "# in the client: put dates, ids and names behind the text that prompts share",
    )


def _memory(topic: Topic, server: Server, look: Look, state: EnginePage) -> Iterator[Finding]:
    limit = f"max_concurrency: 64   # under backends.{server.name} in gateway.yaml"
    if state.kv_usage is not None and state.kv_usage > FULL_MEMORY:
        yield topic.warning(
            f"{server.name}: {100 * state.kv_usage:.0f} % of the KV cache is in use.",
            f"Above {100 * FULL_MEMORY:.0f} % blocks are evicted all the time, {_JITTER}.",
            limit,
        )
    period = look.period(judged=False)
    if period is None or not period[0].preemptions:
        return
    counted, when = period
    of = f" in {counted.finished:.0f} requests" if counted.finished else ""
    yield topic.warning(
        f"{server.name}: {counted.preemptions:.0f} preemptions{of} {when}.",
        "Such a request loses its memory and is computed anew, in the middle of its answer.",
        limit,
    )
