"""What a bench run measured, and its JSON form.

The file is these dataclasses as JSON objects, with `format` and `version` in front. Where `vllm
bench serve` has a name for a figure, it is the name here, too: `request_throughput`,
`median_ttft_ms`, `p99_itl_ms`, `mean_e2el_ms`. What was not measured is null, never 0.

Times are milliseconds unless a name says otherwise; `duration` is in seconds, as in vLLM.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path

import msgspec

from gateway.errors import GatewayError

FORMAT = "ttft-gateway-bench"
VERSION = 1


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


@dataclass(frozen=True, slots=True, kw_only=True)
class Round:
    """One arm's turn of one round.

    Attributes:
        arm: as asked for.
        number: from 1; 0 is the warm-up, which no summary counts.
        position: when in the round it was this arm's turn, from 0.
        started: when, as ISO 8601 in UTC.
        figures: `duration`, `completed`, `failed`, `total_input_tokens`, `total_output_tokens`,
            `request_throughput`, `output_throughput`, `request_goodput` (complete and within the
            SLO, a second; null without one) and mean, median, std, p50, p90, p95 and p99 of ttft,
            tpot, itl and e2el, such as `p90_ttft_ms`.
    """

    arm: str
    number: int
    position: int
    started: str
    figures: Mapping[str, float | None]
    client: ClientCost
    samples: tuple[Sample, ...]
    engines: tuple[EngineUse, ...] = ()
    gpus: tuple[GpuUse, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Spread:
    """A figure over the rounds.

    Attributes:
        median: of the rounds that have it.
        low, high: the smallest and the largest.
        values: one a round, in order: a trend line; null where a round does not have it.
    """

    median: float
    low: float
    high: float
    values: tuple[float | None, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ArmSummary:
    """One arm over all rounds.

    Attributes:
        figures: those of `Round.figures`, and `hit_rate`, `kv_usage_peak`, `gpu_memory_peak` and
            `gpu_utilisation` where they were measured.
        errors: failed requests by kind, a status with its number (`status 429`).
        backends: requests by the backend that served them; empty where replies do not say.
        served: requests by the arm that served them, likewise.
        engine: what the gateway's configuration says of its engines; empty where not known.
    """

    arm: str
    rounds: int
    requests: int
    figures: Mapping[str, Spread]
    errors: Mapping[str, int] = field(default_factory=dict)
    backends: Mapping[str, int] = field(default_factory=dict)
    served: Mapping[str, int] = field(default_factory=dict)
    engine: Mapping[str, str | int | float | bool | None] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """One figure of two arms.

    Attributes:
        figure: a name of `ArmSummary.figures`.
        base, other: the arms.
        difference: median of `other` less that of `base`.
        ratio: median of `other` over that of `base`; null where that is 0.
        separate: the spreads do not overlap, there were enough rounds, and nothing confounds.
        sentence: what may be said.
    """

    figure: str
    base: str
    other: str
    difference: float
    ratio: float | None
    separate: bool
    sentence: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ThresholdCheck:
    """One threshold against one arm.

    Attributes:
        held: None where it was not measured.
        sentence: whether it held, and what to check if not.
    """

    arm: str
    name: str
    limit: float
    value: float | None
    held: bool | None
    sentence: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Load:
    """What was sent, and how.

    Attributes:
        workload: its name on the command line.
        requests: a round.
        concurrency: at a time; None for no limit.
        request_rate: arrivals a second; None for a closed loop.
        burstiness: shape of the gamma distribution of the pauses; 1 is Poisson.
        output_tokens: asked for; None where each request of the data set has its own.
        rounds: asked for.
    """

    workload: str
    api: str
    requests: int
    concurrency: int | None
    request_rate: float | None
    burstiness: float
    output_tokens: int | None
    rounds: int
    seed: int
    slo_ttft_ms: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class BenchResult:
    """A whole run.

    Attributes:
        date: when it began, as ISO 8601 in UTC.
        url, model: what was asked.
        simulated: an engine said that it is simulated; then no time says anything of a machine.
        interrupted: it was ended early; the rounds are those that were complete.
        rounds: every arm's turn of every round, warm-up left out, in order of time.
        remarks: what the reader has to know before comparing, a sentence each.
    """

    date: str
    url: str
    model: str
    load: Load
    arms: tuple[ArmSummary, ...]
    rounds: tuple[Round, ...]
    comparisons: tuple[Comparison, ...] = ()
    thresholds: tuple[ThresholdCheck, ...] = ()
    remarks: tuple[str, ...] = ()
    simulated: bool = False
    interrupted: bool = False
    gateway_version: str = ""


class _Head(msgspec.Struct):
    format: str = ""
    version: int = 0


def encode(result: BenchResult) -> bytes:
    """The file's content."""
    head = {"format": FORMAT, "version": VERSION}
    body = head | msgspec.to_builtins(result)
    return msgspec.json.format(msgspec.json.encode(body), indent=1) + b"\n"


def decode(content: bytes, name: str) -> BenchResult:
    """Read a file's content back.

    Args:
        name: what to call it in errors.

    Raises:
        GatewayError: it is no bench result, or one of another version.
    """
    try:
        head = msgspec.json.decode(content, type=_Head)
        if head.format != FORMAT:
            raise GatewayError(f"{name} is no result of gateway bench: write one with --json.")
        if head.version != VERSION:
            raise GatewayError(
                f"{name} has version {head.version} of the results, and this gateway reads "
                f"version {VERSION}: run the bench anew, or use the gateway that wrote the file."
            )
        return msgspec.json.decode(content, type=BenchResult)
    except (msgspec.DecodeError, RecursionError) as error:
        raise GatewayError(f"{name} is no result of gateway bench: {error}.") from None


def read(path: Path) -> BenchResult:
    """Read a file.

    Raises:
        GatewayError: as `decode`.
        OSError: it cannot be read.
    """
    return decode(path.read_bytes(), path.name)
