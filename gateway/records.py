"""The facts passed between rooms: which API, the timeline of an exchange, and what came of it.

All times are seconds of one monotonic clock, so only differences mean anything; the wall-clock
instant of a request stands once, in `Record.at`.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum

import msgspec


class Api(StrEnum):
    """The API a request speaks; also the `api` label of the metrics."""

    CHAT = "chat"
    COMPLETIONS = "completions"
    MESSAGES = "messages"
    RESPONSES = "responses"
    EMBEDDINGS = "embeddings"
    OTHER = "other"


class Outcome(StrEnum):
    """How an exchange ended; also the `outcome` label of the metrics."""

    OK = "ok"
    CLIENT_GONE = "client_gone"
    REJECTED = "rejected"
    BACKEND_ERROR = "backend_error"
    GATEWAY_ERROR = "gateway_error"
    TIMEOUT = "timeout"


class NoToken(StrEnum):
    """Why a streamed request brought no first token.

    `backend_error`, `timeout` and `gateway_error` count as infinitely late in the evidence;
    `rejected` is not the arm's doing and is left out; `client_gone` is censored.
    """

    BACKEND_ERROR = "backend_error"
    TIMEOUT = "timeout"
    GATEWAY_ERROR = "gateway_error"
    REJECTED = "rejected"
    CLIENT_GONE = "client_gone"
    EMPTY = "empty"


class Refusal(StrEnum):
    """Why the gateway turned a request away; also the `reason` label of the metrics.

    The limits bear the names of their settings. `request` is a request that is itself at fault.
    """

    INVALID_KEY = "invalid_key"
    MODEL_NOT_ALLOWED = "model_not_allowed"
    ARM_NOT_ALLOWED = "arm_not_allowed"
    REQUESTS_PER_MINUTE = "requests_per_minute"
    TOKENS_PER_MINUTE = "tokens_per_minute"
    MAX_CONCURRENCY = "max_concurrency"
    QUEUE_LIMIT = "queue_limit"
    QUEUE_TIMEOUT = "queue_timeout"
    REQUEST = "request"


class Usage(msgspec.Struct, frozen=True, gc=False):
    """Tokens of one request, as the engine counted them.

    Attributes:
        prompt: all prompt tokens, the cached ones included, whichever API said so.
        cached: prompt tokens read from the prefix cache.
        completion: generated tokens.
        exact: False where the stream was cut and `completion` counts what was relayed.
    """

    prompt: int = 0
    cached: int = 0
    completion: int = 0
    exact: bool = True


class Timeline(msgspec.Struct, gc=False):
    """Marks of one exchange, in order, in monotonic seconds; None where it never came so far.

    `sent`, `upstream_headers`, `first_byte` and the token marks belong to the attempt that
    answered.
    """

    received: float
    body_complete: float | None = None
    admitted: float | None = None
    sent: float | None = None
    upstream_headers: float | None = None
    first_byte: float | None = None
    first_token: float | None = None
    last_token: float | None = None
    done: float | None = None


class Trace(msgspec.Struct, frozen=True, gc=False):
    """A request's place in a distributed trace (W3C Trace Context).

    Attributes:
        span_id: of the request itself; the backend is told that it is the parent.
        parent_id: the span of the caller; 0 where the trace begins here.
        flags: as in `traceparent`, without those that nobody has given a meaning.
        state: the caller's `tracestate`.
    """

    trace_id: int
    span_id: int
    parent_id: int = 0
    flags: int = 0
    state: str = ""

    @property
    def sampled(self) -> bool:
        """Whether the trace is recorded."""
        return bool(self.flags & 1)


class Record(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """One exchange, finished: what metrics, the access log and `gateway why` are made from.

    Attributes:
        id: the request id the client saw.
        at: wall-clock seconds since the epoch when the request was received.
        key: the key's name, empty before it was known.
        model: the configured model id, or `unknown`.
        requested_model: what the client asked for, cut to 200 characters.
        session: hash of the session identity; the client's own identifier is never kept.
        session_source: which signal the session came from.
        assigned_arm: where the split put the request; evidence is charged here.
        arm, backend: who served it (the last one tried, if nobody did).
        forced: the client chose the arm by hand, so it is no evidence.
        backend_api: the API the backend was last asked in; another than `api` where translated.
        tried: backends tried before the one that answered.
        no_token: set when a streamed request brought no token.
        refusal: set when the gateway turned the request away.
        gaps: seconds between socket reads that carried tokens.
        detail: the operator's view of what went wrong; may name backends.
        weights: the arms' weights when the request was assigned, and their revision.
        trace: None where traces are off.
    """

    id: str
    at: float
    timeline: Timeline
    api: Api
    path: str
    status: int
    outcome: Outcome
    method: str = "POST"
    stream: bool = False
    key: str = ""
    model: str = "unknown"
    requested_model: str = ""
    session: str = ""
    session_source: str = ""
    assigned_arm: str = ""
    arm: str = ""
    backend: str = ""
    backend_api: str = ""
    forced: bool = False
    tried: tuple[str, ...] = ()
    no_token: NoToken | None = None
    refusal: Refusal | None = None
    usage: Usage | None = None
    gaps: Sequence[float] = ()
    bytes_in: int = 0
    bytes_out: int = 0
    error: str = ""
    detail: str = ""
    weights: dict[str, float] = {}
    revision: int = 0
    trace: Trace | None = None


class EngineFacts(msgspec.Struct, frozen=True, gc=False):
    """What a running engine says of itself; empty or None where it said nothing.

    Attributes:
        version: as its `/version` has it.
        max_model_len: tokens of prompt and answer together.
        apis: those of chat, completions, messages, responses and embeddings that it serves, or
            may serve, since it did not say.
        max_num_batched_tokens, max_num_seqs: what its scheduler takes in one step, which vLLM
            tells in development mode only.
        block_size, cache_tokens: of the KV cache, in tokens.
        prefix_caching: whether prompts share blocks.
        gpu_memory_utilization: as it was started with, from 0 to 1.
        other_models: the first of those it serves, where the one it is asked for is not among them.
    """

    version: str = ""
    max_model_len: int | None = None
    apis: frozenset[str] | None = None
    max_num_batched_tokens: int | None = None
    max_num_seqs: int | None = None
    block_size: int | None = None
    cache_tokens: int | None = None
    prefix_caching: bool | None = None
    gpu_memory_utilization: float | None = None
    other_models: tuple[str, ...] | None = None


class TtftParts(msgspec.Struct, frozen=True, gc=False):
    """Where the time to first token of a backend's streamed requests went: means a request, in
    milliseconds, over a window. None where the engine does not tell.

    Attributes:
        seconds: the window's length.
        requests: streamed requests whose first token the gateway timed in it.
        engine_requests: first tokens that the engine counted in it, of whomever.
        total_ms: request received to first token, the sum of the parts below.
        gateway_ms: until the request was sent to the backend, with the gateway's queue.
        network_ms: sent to first token as the gateway saw it, less what the engine counted: the
            wire, and what of the engine's server is outside of its own clock.
        engine_queue_ms, engine_prefill_ms: the scheduler's queue, and the prompt's computation.
        engine_other_ms: the rest of the engine's own figure, such as splitting into tokens.
        comparable: both counted about the same requests, so that their difference means something.
    """

    seconds: float
    requests: int
    engine_requests: int
    total_ms: float
    gateway_ms: float
    network_ms: float
    engine_queue_ms: float | None
    engine_prefill_ms: float | None
    engine_other_ms: float
    comparable: bool
