"""What a span says of its request: the mapping that docs/tracing.md shows.

Names are those of OpenTelemetry's semantic conventions where they have one, and our own under
`ttft_gateway.` elsewhere. They stand here as text, since the conventions for generative AI are not
stable and their constants come and go with a version of the package.

Nothing here is content: no prompt, no answer, no message of an error (an engine quotes prompts in
some), no address.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from gateway.records import Api, Outcome, Record

Value = str | bool | int | float | tuple[str, ...]

PROVIDER = "vllm"

_OPERATIONS = {
    Api.CHAT: "chat",
    Api.COMPLETIONS: "text_completion",
    Api.MESSAGES: "chat",
    Api.RESPONSES: "chat",
    Api.EMBEDDINGS: "embeddings",
}
# What names no conversation.
_UNITS = frozenset({"", "key", "request"})

FAILURES: Mapping[Outcome, str] = {
    Outcome.BACKEND_ERROR: "The model's server failed.",
    Outcome.GATEWAY_ERROR: "The gateway failed.",
    Outcome.TIMEOUT: "A time limit passed.",
}
"""The outcomes that are errors of the span, and how its status puts them.

A request that was turned away (4xx) is its client's error, not this server's, and neither is a
client that left.
"""


def span_name(record: Record) -> str:
    """`chat llama-3-70b`: what was asked of which configured model, so that names are few."""
    return f"{_OPERATIONS.get(record.api, record.api)} {record.model}"


def _between(record: Record, start: str, end: str) -> float | None:
    first, last = getattr(record.timeline, start), getattr(record.timeline, end)
    return None if first is None or last is None else round(last - first, 6)


def _first_chunk(record: Record) -> float | None:
    return _between(record, "body_complete", "first_byte") if record.stream else None


def _conversation(record: Record) -> str:
    return record.session if record.session_source not in _UNITS else ""


ATTRIBUTES: Mapping[str, Callable[[Record], Value | None]] = {
    "gen_ai.operation.name": lambda r: _OPERATIONS.get(r.api),
    "gen_ai.provider.name": lambda r: PROVIDER,
    "gen_ai.request.model": lambda r: r.requested_model,
    "gen_ai.request.stream": lambda r: r.stream,
    "gen_ai.response.model": lambda r: r.model if r.usage else None,
    "gen_ai.response.time_to_first_chunk": _first_chunk,
    "gen_ai.usage.input_tokens": lambda r: r.usage.prompt if r.usage else None,
    "gen_ai.usage.cache_read.input_tokens": lambda r: r.usage.cached if r.usage else None,
    "gen_ai.usage.output_tokens": lambda r: r.usage.completion if r.usage else None,
    "gen_ai.conversation.id": _conversation,
    "http.request.method": lambda r: r.method,
    "http.response.status_code": lambda r: r.status or None,
    "url.path": lambda r: r.path,
    "error.type": lambda r: r.outcome if r.outcome in FAILURES else None,
    "ttft_gateway.request_id": lambda r: r.id,
    "ttft_gateway.key": lambda r: r.key,
    "ttft_gateway.model": lambda r: r.model,
    "ttft_gateway.assigned_arm": lambda r: r.assigned_arm,
    "ttft_gateway.arm": lambda r: r.arm,
    "ttft_gateway.backend": lambda r: r.backend,
    "ttft_gateway.backend_api": lambda r: r.backend_api,
    "ttft_gateway.tried_backends": lambda r: r.tried,
    "ttft_gateway.forced": lambda r: r.forced,
    "ttft_gateway.weights_revision": lambda r: r.revision,
    "ttft_gateway.outcome": lambda r: r.outcome,
    "ttft_gateway.no_first_token": lambda r: r.no_token,
    "ttft_gateway.time_to_first_token": lambda r: _between(r, "body_complete", "first_token"),
    "ttft_gateway.upstream_time_to_first_token": lambda r: _between(r, "sent", "first_token"),
    "ttft_gateway.queue_time": lambda r: _between(r, "body_complete", "admitted"),
    "ttft_gateway.usage_exact": lambda r: r.usage.exact if r.usage else None,
}
"""Each attribute and where it comes from. What is None or empty is left out of the span."""


def attributes(record: Record) -> dict[str, Value]:
    """Everything a span says of its request."""
    found = ((name, value_of(record)) for name, value_of in ATTRIBUTES.items())
    # StrEnums are text to everybody but the exporter, which asks for the very type.
    return {
        name: str(value) if isinstance(value, str) else value
        for name, value in found
        if value is not None and value != "" and value != ()
    }
