"""What one request, engine, GPU and the client itself came to in a round.

Times are milliseconds. What was not measured is None, never 0.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class ErrorKind(StrEnum):
    """Why a request counts as failed."""

    CONNECT = "connect"
    TIMEOUT = "timeout"
    STATUS = "status"
    REPORTED = "error in stream"
    CUT = "cut stream"
    EMPTY = "empty"
    MALFORMED = "not a stream"


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """One request.

    Attributes:
        number: its place in the round, from 0, by time of sending.
        due_ms: since the round began: when it should have left. In a closed loop that is when its
            user was free for it, in an open one when the arrivals had it.
        ttft_ms: from due to the first generated token.
        e2e_ms: from due to the last event, of complete replies.
        itl_ms: between socket reads that carried tokens.
        client_ms: of `ttft_ms`, what the client itself used before the request left.
        prompt_tokens, cached_tokens, completion_tokens: as the engine counted them.
        prompt_characters: of all texts that were sent.
        session: which conversation it belongs to; empty where each request is one of its own.
        turn: its place in that conversation, from 0.
        arm, backend: who served it, where the reply says so; else empty.
        status: of the HTTP reply; 0 where there was none.
        error: why it failed; None for a complete reply.
        detail: what was said of the failure.
    """

    number: int
    due_ms: float
    ttft_ms: float | None = None
    e2e_ms: float | None = None
    itl_ms: tuple[float, ...] = ()
    client_ms: float = 0.0
    prompt_tokens: int | None = None
    cached_tokens: int | None = None
    completion_tokens: int | None = None
    prompt_characters: int = 0
    session: str = ""
    turn: int = 0
    arm: str = ""
    backend: str = ""
    status: int = 0
    error: ErrorKind | None = None
    detail: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineUse:
    """One engine during one round; null where it does not tell, or could not be asked.

    Attributes:
        name: of the backend.
        arm: which arm it serves; empty where that is not known.
        hit_rate: prompt tokens found in the prefix cache over those looked up, from 0 to 1.
        kv_usage_peak: the highest part of the KV cache seen in use, from 0 to 1.
        preemptions: requests thrown out of memory and computed anew.
        requests: that it finished, whoever sent them.
        absent: why nothing is known; empty where something is.
    """

    name: str
    arm: str = ""
    hit_rate: float | None = None
    kv_usage_peak: float | None = None
    preemptions: float | None = None
    requests: float | None = None
    absent: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class GpuUse:
    """One GPU during one round.

    Attributes:
        name: its index, and the host where an exporter tells it.
        arm: which arm it serves; empty where that is not known.
        memory_peak: the highest part of its memory seen in use, from 0 to 1.
        memory_peak_mib: the same in MiB.
        utilisation: mean part of the time in which a kernel ran, from 0 to 1.
    """

    name: str
    arm: str = ""
    memory_peak: float | None = None
    memory_peak_mib: float | None = None
    utilisation: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientCost:
    """What the client itself cost.

    Attributes:
        cpu_ms_per_request: of its process, while the round ran.
        cpu_share: of one core, from 0 to 1.
        send_ms: mean of the requests' `client_ms`.
        stamp_ms, stamp_p99_ms: from a socket's being readable to the time stamp, mean and P99, of
            a probe's; null where there was none.
        ttft_share: `send_ms` and `stamp_ms` over the median TTFT.
    """

    cpu_ms_per_request: float
    cpu_share: float
    send_ms: float
    stamp_ms: float | None = None
    stamp_p99_ms: float | None = None
    ttft_share: float | None = None
