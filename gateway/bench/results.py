"""What a bench run measured, and its JSON form.

The file is these dataclasses as JSON objects, with `format` and `version` in front. Where `vllm
bench serve` has a name for a figure, it is the name here, too: `request_throughput`,
`median_ttft_ms`, `p99_itl_ms`, `mean_e2el_ms`. What was not measured is null, never 0.

Times are milliseconds unless a name says otherwise; `duration` is in seconds, as in vLLM.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import msgspec

from gateway.bench.measured import ClientCost, EngineUse, ErrorKind, GpuUse, Sample
from gateway.errors import GatewayError
from gateway.settings.files import read_file

__all__ = [
    "FORMAT",
    "VERSION",
    "ArmSummary",
    "BenchResult",
    "ClientCost",
    "Comparison",
    "EngineUse",
    "ErrorKind",
    "GpuUse",
    "Load",
    "Round",
    "Sample",
    "Sources",
    "Spread",
    "ThresholdCheck",
    "decode",
    "encode",
    "read",
]

FORMAT = "ttft-gateway-bench"
VERSION = 1
LARGEST = 2**30
"""Bytes of a file: a hundred thousand answers of a hundred tokens have a quarter of it."""


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
        engine: what its engines run, as they or the gateway's configuration say, such as
            `max_num_batched_tokens`; empty where not known.
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
        held: None where it was not measured, or too many requests failed to judge it.
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
    """What was sent, and how. What a workload has no use for is None.

    Attributes:
        workload: its name on the command line.
        requests: a round.
        concurrency: at a time; None for no limit.
        request_rate: arrivals a second; None for a closed loop.
        burstiness: shape of the gamma distribution of the pauses; 1 is Poisson.
        output_tokens: asked for; None where each request of the data set has its own.
        rounds: asked for.
        dataset: name of the file that was read, without its folder.
        prefix_tokens, question_tokens: of the shared prompt and of each question, about.
        cold: another shared prompt in each round.
        turns, think: of a session: how many, and mean seconds in between.
        extra: names of the fields that were added to each request; their values may be secret.
        timeout: seconds for a request.
        warm_up: a round that does not count went first.
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
    dataset: str | None = None
    prefix_tokens: int | None = None
    question_tokens: int | None = None
    cold: bool | None = None
    turns: int | None = None
    think: float | None = None
    extra: tuple[str, ...] = ()
    timeout: float | None = None
    warm_up: bool | None = None

    @property
    def whole(self) -> bool:
        """Every option is here: early files of this version end with `slo_ttft_ms`."""
        return self.warm_up is not None


@dataclass(frozen=True, slots=True, kw_only=True)
class Sources:
    """Who was asked during the rounds because the command line named them, without passwords.

    Attributes:
        engines: their addresses by name.
        exporters: metrics pages of dcgm-exporters.
        gpus: which arm a GPU serves, by the GPU's name.
    """

    engines: Mapping[str, str] = field(default_factory=dict)
    exporters: tuple[str, ...] = ()
    gpus: Mapping[str, str] = field(default_factory=dict)


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
    sources: Sources = field(default_factory=Sources)


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
        OSError: it cannot be read, is no regular file, or has more than `LARGEST` bytes.
    """
    return decode(read_file(path, LARGEST), path.name)
