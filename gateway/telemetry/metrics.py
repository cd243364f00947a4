"""Every metric made from a finished exchange.

The definitions follow one rule: metrics tell what was served. The `arm` and `backend` labels
name who served a request (or was tried last), and requests that chose their arm by hand count
like any other, in the objective too, so that `gateway_slo_total` and the histogram beside it
always tell the same story. What is evidence for an experiment is decided elsewhere.
"""

from __future__ import annotations

import asyncio
from bisect import bisect_right
from collections.abc import AsyncIterator, Iterator, Sequence
from itertools import permutations, product

from prometheus_client import CollectorRegistry, generate_latest

from gateway.engines.parts import Own
from gateway.records import Api, NoToken, Outcome, Record, Timeline
from gateway.telemetry import gauges
from gateway.telemetry.buckets import PROMPT_BOUNDS, PROMPT_LABELS
from gateway.telemetry.by_key import ByKey, ConfiguredKey
from gateway.telemetry.catalogue import Catalogue
from gateway.telemetry.gauges import LiveTable
from gateway.telemetry.series import Family, Histogram
from gateway.vllm.page import Total

UNKNOWN = "unknown"

# Reasons that count as a first token that came too late. A rejected request and a client that
# left say nothing of the arm, and an answer that is rightly empty kept nobody waiting.
MISSED = frozenset({NoToken.BACKEND_ERROR, NoToken.TIMEOUT, NoToken.GATEWAY_ERROR})

FAILED = (Outcome.BACKEND_ERROR, Outcome.GATEWAY_ERROR, Outcome.TIMEOUT)

# Text made before the loop gets its turn: about eight histograms, 0.1 ms.
SLICE_CHARACTERS = 64 * 1024

Labels = tuple[str, str, str]


class Metrics:
    """Counts finished exchanges and renders the whole of `/metrics`.

    It belongs to the event loop's thread.

    Args:
        registry: metrics of other rooms and of the process, rendered along in a thread.

    Attributes:
        by_key: what each key has used.
    """

    def __init__(self, registry: CollectorRegistry) -> None:
        self._registry = registry
        self._families = Catalogue()
        self.by_key = ByKey(self._families)
        self._table: LiveTable | None = None
        self._models: set[str] = set()
        self._arms: set[tuple[str, str]] = set()
        self._backends: set[str] = set()
        self._known: set[Labels] = set()
        self._objectives: dict[str, float] = {}

    def use(self, table: LiveTable, keys: Sequence[ConfiguredKey]) -> None:
        """Take the table and the keys now in force: at start and after each reload.

        Names of models, arms and backends that have been configured once stay valid as labels,
        for the requests still under way and because a counter that vanishes loses its last
        increments.
        """
        self._table = table
        self._objectives = {}
        for model, route in table.routes.items():
            self._models.add(model)
            self._arms.update((model, arm) for arm in route.weights)
            if route.settings.experiment.slo_ttft_ms is not None:
                self._objectives[model] = route.settings.experiment.slo_ttft_ms / 1000
        for backend in table.backends.values():
            self._backends.add(backend.name)
            self._known.add((backend.model, backend.arm, backend.name))
        self.by_key.use(keys, table.routes)
        self._begin()

    def _begin(self) -> None:
        """Have what rarely happens counted from 0.

        A rate begins at a counter's first scrape: failures that were over before it would be in
        none, and failovers are over within seconds.
        """
        families = self._families
        for labels in self._known:
            for reason in NoToken:
                families.no_first_token[*labels, reason].value += 0
            for api, outcome in product(Api, FAILED):
                families.requests[*labels, api, outcome].value += 0
        arms: dict[str, list[str]] = {}
        for model, arm in self._arms:
            arms.setdefault(model, []).append(arm)
        for model, names in arms.items():
            for arm, other in permutations(names, 2):
                families.failovers[model, arm, other].value += 0
        for (model, arm), result in product(self._arms, ("met", "missed")):
            if model in self._objectives:
                families.slo[model, arm, result].value += 0

    def observe(self, record: Record) -> None:
        """Count one finished exchange in every metric that concerns it."""
        labels = self._labels(record)
        model, arm, backend = labels
        families, timeline = self._families, record.timeline
        families.requests[model, arm, backend, record.api, record.outcome].value += 1
        self.by_key.observe(record, model)
        if timeline.done is not None:
            stream = "true" if record.stream else "false"
            families.duration[model, arm, backend, record.api, stream].observe(
                timeline.done - timeline.received
            )
        self._observe_waiting(timeline, model, arm)
        if record.usage is not None:
            families.prompt_tokens[labels].value += record.usage.prompt
            families.cached_tokens[labels].value += record.usage.cached
            families.completion_tokens[labels].value += record.usage.completion
        if record.assigned_arm != record.arm and record.assigned_arm and record.arm:
            assigned = (
                record.assigned_arm if (model, record.assigned_arm) in self._arms else UNKNOWN
            )
            families.failovers[model, assigned, arm].value += 1
        if record.stream:
            self._observe_stream(record, labels)

    def _observe_waiting(self, timeline: Timeline, model: str, arm: str) -> None:
        if timeline.body_complete is None or timeline.admitted is None:
            return
        queued = timeline.admitted - timeline.body_complete
        self._families.queue[model, arm].observe(queued)
        if timeline.sent is not None:
            self._families.overhead[model,].observe(timeline.sent - timeline.body_complete - queued)

    def _observe_stream(self, record: Record, labels: Labels) -> None:
        families, timeline = self._families, record.timeline
        model, arm, backend = labels
        sent = timeline.sent
        # The first byte of an error is none of a stream.
        if sent is not None and timeline.first_byte is not None and record.status < 400:
            families.first_byte[labels].observe(timeline.first_byte - sent)
        if record.no_token is not None:
            families.no_first_token[model, arm, backend, record.no_token].value += 1
        if timeline.first_token is None or timeline.body_complete is None:
            if record.no_token in MISSED and model in self._objectives:
                families.slo[model, arm, "missed"].value += 1
            return
        ttft = timeline.first_token - timeline.body_complete
        families.first_token[model, arm, backend, record.api].observe(ttft)
        if sent is not None:
            families.upstream_first_token[model, arm, backend, record.api].observe(
                timeline.first_token - sent
            )
        # A stream that was cut before its usage came has told nothing of its prompt.
        if record.usage is not None and record.usage.prompt:
            length = PROMPT_LABELS[bisect_right(PROMPT_BOUNDS, record.usage.prompt)]
            families.first_token_by_prompt[model, arm, length].observe(ttft)
        if model in self._objectives:
            result = "met" if ttft <= self._objectives[model] else "missed"
            families.slo[model, arm, result].value += 1
        if record.gaps:
            families.inter_token[labels].observe_all(record.gaps)

    def _labels(self, record: Record) -> Labels:
        """Model, arm and backend as labels; names that no configuration ever held are `unknown`.

        A request that was turned away before any backend was tried counts for the arm it was
        assigned to.
        """
        model, arm = record.model, record.arm or record.assigned_arm
        labels = (model, arm, record.backend)
        if labels in self._known:
            return labels
        return (
            model if model in self._models else UNKNOWN,
            arm if (model, arm) in self._arms else UNKNOWN,
            record.backend if record.backend in self._backends else UNKNOWN,
        )

    def own(self, backend: str) -> Own:
        """The sums of a backend's times to first token, over all that it ever served."""
        families = self._families
        return Own(
            _total(families.first_token, backend), _total(families.upstream_first_token, backend)
        )

    async def render(self) -> AsyncIterator[bytes]:
        """`/metrics` in Prometheus' text format, slice by slice.

        A full registry is megabytes of text. Making it in a thread would hold the interpreter
        for its switch interval, 5 ms at a time; here the loop gets its turn after each slice.
        """
        parts: list[str] = []
        size = 0
        for piece in self._pieces():
            parts.append(piece)
            size += len(piece)
            if size >= SLICE_CHARACTERS:
                yield "".join(parts).encode()
                parts, size = [], 0
                await asyncio.sleep(0)
        yield "".join(parts).encode()
        # Counting a thousand open connections in /proc takes milliseconds, none of them ours.
        yield await asyncio.to_thread(generate_latest, self._registry)

    def _pieces(self) -> Iterator[str]:
        if self._table is not None:
            yield from gauges.pieces(self._table)
        for family in self._families.all():
            yield from family.pieces()


def _total(family: Family[Histogram], backend: str) -> Total:
    """Seconds and observations of a backend, over all APIs."""
    found = [series for labels, series in list(family.items()) if labels[2] == backend]
    return Total(sum(one.sum for one in found), sum(sum(one.counts) for one in found))
