"""The metrics by name: what each measures, from which mark to which, and its labels."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from gateway.telemetry.buckets import LATENCY, OVERHEAD
from gateway.telemetry.series import Counter, Family, Histogram

SERVED = ("model", "arm", "backend")
KEYED = ("key", "model")

_latency = partial(Histogram, bounds=LATENCY)
_overhead = partial(Histogram, bounds=OVERHEAD)


class Catalogue:
    """One attribute a metric; label values are given in the order of the label names."""

    def __init__(self) -> None:
        self.first_token = Family(
            "gateway_time_to_first_token_seconds",
            (*SERVED, "api"),
            "From the whole request received to the first generated token, streamed requests.",
            _latency,
        )
        self.upstream_first_token = Family(
            "gateway_upstream_time_to_first_token_seconds",
            (*SERVED, "api"),
            "From the request sent to the backend to the first generated token, streamed requests.",
            _latency,
        )
        self.first_byte = Family(
            "gateway_time_to_first_byte_seconds",
            SERVED,
            "From the request sent to the backend to the first byte of its stream's body.",
            _latency,
        )
        self.first_token_by_prompt = Family(
            "gateway_time_to_first_token_by_prompt_seconds",
            ("model", "arm", "prompt_tokens"),
            "Time to first token by length of the prompt, where the backend told it.",
            _latency,
        )
        self.inter_token = Family(
            "gateway_inter_token_latency_seconds",
            SERVED,
            "Between reads from the backend that carried tokens.",
            _latency,
        )
        self.duration = Family(
            "gateway_request_duration_seconds",
            (*SERVED, "api", "stream"),
            "From the request's head received to its end.",
            _latency,
        )
        self.queue = Family(
            "gateway_queue_seconds",
            ("model", "arm"),
            "From the whole request received to its admission.",
            _latency,
        )
        self.overhead = Family(
            "gateway_overhead_seconds",
            ("model",),
            "From the whole request received to its being sent, less the queue; "
            "where an attempt failed, its time is included.",
            _overhead,
        )
        self.requests = Family(
            "gateway_requests_total",
            (*SERVED, "api", "outcome"),
            "Requests ended, by outcome.",
            Counter,
        )
        self.no_first_token = Family(
            "gateway_no_first_token_total",
            (*SERVED, "reason"),
            "Streamed requests that brought no token, by reason.",
            Counter,
        )
        self.failovers = Family(
            "gateway_failovers_total",
            ("model", "assigned_arm", "served_arm"),
            "Requests served by another arm than the split had assigned them to.",
            Counter,
        )
        self.slo = Family(
            "gateway_slo_total",
            ("model", "arm", "result"),
            "Streamed requests whose first token came within the model's slo_ttft_ms, or did not; "
            "a request that failed without a token has missed it.",
            Counter,
        )
        self.prompt_tokens = Family(
            "gateway_prompt_tokens_total",
            SERVED,
            "Prompt tokens, the cached ones included, as the backends counted them.",
            Counter,
        )
        self.cached_tokens = Family(
            "gateway_cached_prompt_tokens_total",
            SERVED,
            "Prompt tokens read from the prefix cache.",
            Counter,
        )
        self.completion_tokens = Family(
            "gateway_completion_tokens_total", SERVED, "Generated tokens.", Counter
        )
        self.key_requests = Family(
            "gateway_key_requests_total",
            ("key", "model", "outcome"),
            "Requests ended, by the name of the key; without a valid key it is unknown.",
            Counter,
        )
        self.key_rejections = Family(
            "gateway_key_rejections_total",
            ("key", "reason"),
            "Requests that the gateway turned away, by the name of the key and the limit or rule.",
            Counter,
        )
        self.key_prompt_tokens = Family(
            "gateway_key_prompt_tokens_total",
            KEYED,
            "Prompt tokens, the cached ones included, by the name of the key.",
            Counter,
        )
        self.key_cached_tokens = Family(
            "gateway_key_cached_prompt_tokens_total",
            KEYED,
            "Prompt tokens read from the prefix cache, by the name of the key.",
            Counter,
        )
        self.key_completion_tokens = Family(
            "gateway_key_completion_tokens_total",
            KEYED,
            "Generated tokens, by the name of the key.",
            Counter,
        )

    def all(self) -> Iterator[Family[Histogram] | Family[Counter]]:
        """Every metric, in the order of definition."""
        yield from vars(self).values()
