"""Late first tokens without any error: each backend's cache, memory and chunk settings."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import ceil
from typing import Any

import msgspec

from gateway.cli.answering import listed
from gateway.cli.asking import Unanswered
from gateway.cli.doctor.case import Case
from gateway.cli.doctor.engine_page import EngineState, read
from gateway.cli.doctor.finding import Finding, Topic
from gateway.cli.key_form import sendable
from gateway.cli.remote import Remote
from gateway.errors import GatewayError
from gateway.settings import EngineSettings, Settings
from gateway.vllm import PROMPT, SMALL_CHUNK

TOPIC = Topic("ttft")

LOW_HIT_RATE = 0.80
"""Below it the cache does not fit the traffic."""

FULL_MEMORY = 0.95
"""Above it blocks are evicted all the time, between two requests of one conversation, too."""

ENOUGH_QUERIES = 10_000
"""Tokens looked up in the cache before its hit rate says anything."""

ENOUGH_REQUESTS = 20
"""As well: a conversation's first turn finds nothing, however good the cache."""

_JITTER = "so the same prompt is fast once and slow the next time"


class Server(msgspec.Struct, frozen=True):
    """A backend, as the admin API tells it or the configuration file has it."""

    name: str
    url: str
    engine: dict[str, Any] | None = None
    max_model_len: int | None = None
    usable: bool = True
    enabled: bool = True

    @property
    def settings(self) -> EngineSettings:
        return EngineSettings.model_validate(self.engine or {})


@dataclass(frozen=True, slots=True)
class Unknown:
    """The backends are not known."""

    finding: Finding


def check(case: Case) -> Iterator[Finding]:
    """Every backend in turn; what cannot be read of one does not hold up the others."""
    servers = _servers(case)
    if isinstance(servers, Unknown):
        yield servers.finding
        return
    if not servers:
        yield TOPIC.warning(
            "The gateway has no backend.",
            "It can answer nothing.",
            "gateway init   # writes a commented gateway.yaml",
        )
    for server in servers:
        found = [
            *_health(server),
            *_served(case, server),
            *_declared(server),
            *_measured(case, server),
        ]
        yield from found or [TOPIC.ok(f"{server.name}: cache, memory and chunk settings are fine.")]


def _servers(case: Case) -> list[Server] | Unknown:
    if sendable(case.admin_key):
        try:
            answer = Remote(case.address.root, case.admin_key).get("backends")
            return msgspec.convert(answer, list[Server])
        except GatewayError as error:
            refused = error.message
        except msgspec.ValidationError:
            refused = "The admin API's answer has an unknown form."
    else:
        refused = "There is no admin key."
    if isinstance(case.settings, Settings):
        return _configured(case.settings)
    return Unknown(
        TOPIC.warning(
            f"Backends were not looked at. {refused}",
            "Jitter without errors comes from the engines' caches and chunk settings.",
            "export GATEWAY_ADMIN_KEY=KEY   # admin.key of gateway.yaml; or give -c gateway.yaml",
        )
    )


def _configured(settings: Settings) -> list[Server]:
    return [
        Server(name, backend.url, backend.engine.model_dump() if backend.engine else None)
        for name, backend in settings.backends.items()
    ]


def _health(server: Server) -> Iterator[Finding]:
    if not server.enabled:
        yield TOPIC.warning(
            f"{server.name} was taken out.",
            "Its sessions went to other servers, whose caches do not know them.",
            f"gateway backends in {server.name}",
        )
    elif not server.usable:
        yield TOPIC.error(
            f"{server.name} takes no requests now: it is down, or failed several in a row.",
            "Its sessions go to other servers, whose caches do not know them.",
            f"curl -si {server.url}/health",
        )


def _served(case: Case, server: Server) -> Iterator[Finding]:
    """The engine's own ids against the one the gateway asks it for, where both are known."""
    if not isinstance(case.settings, Settings):
        return
    served = [model["id"] for model in listed(case.ask(f"{server.url}/v1/models"))]
    for name, model in case.settings.models.items():
        wanted = model.upstream_model or name
        if any(server.name in arm.backends for arm in model.arms.values()) and served:
            if wanted in served:
                continue
            yield TOPIC.error(
                f"{server.name} serves no model {wanted} but {', '.join(served[:10])}.",
                "Every request it gets fails with 502, and it counts as up all the same.",
                f"--served-model-name {wanted}   # where the engine is started; or upstream_model "
                f"under models.{name}",
            )


def _declared(server: Server) -> Iterator[Finding]:
    """Chunk settings, as the configuration declares them: engines tell them nowhere."""
    engine = server.settings
    chunk, sequences, window = (
        engine.max_num_batched_tokens,
        engine.max_num_seqs,
        server.max_model_len,
    )
    if engine.prefix_caching is False:
        yield _caching_off(server, "is declared off")
    if chunk is None:
        yield TOPIC.warning(
            f"{server.name}: its chunk size is not stated, so it was not checked.",
            "It is what arms differ in, and no engine tells it over HTTP.",
            f"engine: {{max_num_batched_tokens: 512}}   # under backends.{server.name}, as the "
            "engine was started",
        )
        return
    if sequences is not None and chunk < sequences:
        yield TOPIC.error(
            f"{server.name}: max_num_batched_tokens ({chunk}) is below max_num_seqs ({sequences}).",
            "Running sequences use up each step's tokens, so prompts wait; current engines do not "
            "start so.",
            f"--max-num-batched-tokens {max(512, sequences)}   # where the engine is started",
        )
    elif chunk < SMALL_CHUNK:
        yield TOPIC.warning(
            f"{server.name}: max_num_batched_tokens is {chunk}, below {SMALL_CHUNK}.",
            f"A prompt of {PROMPT} tokens takes at least {ceil(PROMPT / chunk)} steps to its first "
            "token, each shared with whatever else runs.",
            "--max-num-batched-tokens 512   # where the engine is started",
        )
    elif window is not None and chunk >= window:
        yield TOPIC.warning(
            f"{server.name}: max_num_batched_tokens ({chunk}) holds the longest prompt there can "
            f"be ({window}), so nothing is chunked.",
            "A long prompt takes a step for itself, and every stream stands still meanwhile.",
            "--max-num-batched-tokens 512   # where the engine is started",
        )


def _measured(case: Case, server: Server) -> Iterator[Finding]:
    """What the engine says of itself."""
    url = f"{server.url}/metrics"
    reply = case.ask(url)
    if isinstance(reply, Unanswered) or not reply.ok:
        what = reply.detail if isinstance(reply, Unanswered) else f"HTTP {reply.status}"
        yield _unread(server, url, what)
        return
    try:
        state = read(reply.text)
    except ValueError:
        state = None
    if state is None:
        yield _unread(server, url, "no vLLM metrics")
        return
    yield from _cache(server, state)
    yield from _memory(server, state)


def _unread(server: Server, url: str, what: str) -> Finding:
    return TOPIC.warning(
        f"{server.name}: its metrics could not be read from here ({what}).",
        "Cache and memory were not checked.",
        f"curl -s {url} | grep -E 'prefix_cache|kv_cache|preemptions'",
    )


def _caching_off(server: Server, how: str) -> Finding:
    return TOPIC.error(
        f"{server.name}: prefix caching {how}.",
        "Every turn of a conversation computes its whole history anew, so the first token comes "
        "later with each turn.",
        "--enable-prefix-caching   # where the engine is started",
    )


def _cache(server: Server, state: EngineState) -> Iterator[Finding]:
    declared = server.settings.prefix_caching
    if state.prefix_caching is False:
        if declared is not False:
            yield _caching_off(server, "is off, as the engine says")
        return
    enough = (state.queried is None or state.queried >= ENOUGH_QUERIES) and (
        state.finished is None or state.finished >= ENOUGH_REQUESTS
    )
    if state.hit_rate is not None and state.hit_rate < LOW_HIT_RATE and enough:
        yield TOPIC.warning(
            f"{server.name}: {100 * state.hit_rate:.0f} % of prompt tokens were found in the "
            f"prefix cache since its start, below {100 * LOW_HIT_RATE:.0f} %.",
            f"The cache does not fit the traffic, {_JITTER}; prompts that differ early, such as by "
            "a date in their first line, do the same.",
            "--gpu-memory-utilization 0.92   # where the engine is started",
        )


def _memory(server: Server, state: EngineState) -> Iterator[Finding]:
    if state.kv_usage is not None and state.kv_usage > FULL_MEMORY:
        yield TOPIC.warning(
            f"{server.name}: {100 * state.kv_usage:.0f} % of the KV cache is in use.",
            f"Above {100 * FULL_MEMORY:.0f} % blocks are evicted all the time, {_JITTER}.",
            f"max_concurrency: 64   # under backends.{server.name} in gateway.yaml",
        )
    if state.preemptions:
        of = f" in {state.finished:.0f} requests" if state.finished else ""
        yield TOPIC.warning(
            f"{server.name}: {state.preemptions:.0f} preemptions{of} since its start.",
            "Such a request loses its memory and is computed anew, in the middle of its answer.",
            f"max_concurrency: 64   # under backends.{server.name} in gateway.yaml",
        )
