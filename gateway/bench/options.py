"""What a run was asked for, checked as a whole, and the plan that follows from it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from gateway.bench import datasets, workloads
from gateway.bench.driver import Arrivals
from gateway.bench.results import Load
from gateway.bench.rounds import Plan
from gateway.bench.speech import PATHS
from gateway.bench.workloads import CHARACTERS_A_TOKEN, Workload
from gateway.errors import GatewayError
from gateway.records import Api

USERS = 32
PREFIX_TOKENS = workloads.SYSTEM_CHARACTERS // CHARACTERS_A_TOKEN
QUESTION_TOKENS = workloads.QUESTION_CHARACTERS // CHARACTERS_A_TOKEN


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """A run.

    Attributes:
        prefix_tokens, question_tokens: about so many, at four characters a token.
        dataset: of the workloads that read a file.
        output_tokens: of each answer, at most; None for 1, or what the data set says.
        cold: another shared prefix in each round.
        turns, think: of a session: how many, and mean seconds in between.
        request_rate: a second, for an open loop; None for a closed one.
        concurrency: None for 32 users in a closed loop, and for no limit in an open one.
        extra: fields of every request's body.
    """

    api: str = "chat"
    workload: str = "shared-prefix"
    dataset: Path | None = None
    requests: int = 200
    rounds: int = 3
    warm_up: bool = True
    output_tokens: int | None = None
    prefix_tokens: int = PREFIX_TOKENS
    question_tokens: int = QUESTION_TOKENS
    cold: bool = False
    turns: int = 3
    think: float = 0.0
    concurrency: int | None = None
    request_rate: float | None = None
    burstiness: float = 1.0
    slo_ttft_ms: float | None = None
    seed: int = 0
    extra: Mapping[str, Any] = field(default_factory=dict)

    @property
    def shares_prefix(self) -> bool:
        return self.workload in ("shared-prefix", "sessions")

    @property
    def users(self) -> int | None:
        """How many requests may be under way; None for no limit."""
        return self.concurrency or (USERS if self.request_rate is None else None)


def api_of(options: Options) -> Api:
    """Raises:
    GatewayError: it is none that can be asked.
    """
    if options.api not in [api.value for api in PATHS]:
        raise GatewayError(f"--api {options.api} is none of {', '.join(PATHS)}.")
    return Api(options.api)


def plan_of(options: Options, arms: Sequence[str]) -> Plan:
    """Raises:
    GatewayError: the workload is none, or its file is none of its kind.
    OSError: its file cannot be read.
    """
    rate = options.request_rate
    return Plan(
        arms=tuple(arms),
        rounds=options.rounds,
        workload=workload_of(options),
        concurrency=options.users,
        arrivals=None if rate is None else Arrivals(rate, options.burstiness),
        think=options.think,
        slo_ttft_ms=options.slo_ttft_ms,
        seed=options.seed,
        warm_up=options.warm_up,
    )


def load_of(options: Options) -> Load:
    """What the result says of it."""
    return Load(
        workload=options.workload,
        api=options.api,
        requests=options.requests,
        concurrency=options.users,
        request_rate=options.request_rate,
        burstiness=options.burstiness,
        output_tokens=options.output_tokens or (1 if options.dataset is None else None),
        rounds=options.rounds,
        seed=options.seed,
        slo_ttft_ms=options.slo_ttft_ms,
    )


def workload_of(options: Options) -> Workload:
    """Raises:
    GatewayError: there is no such workload, or its file is none of its kind.
    OSError: its file cannot be read.
    """
    make = WORKLOADS.get(options.workload)
    if make is None:
        raise GatewayError(f"--workload {options.workload} is none of {', '.join(WORKLOADS)}.")
    return make(options)


def _shared_prefix(options: Options) -> Workload:
    return workloads.shared_prefix(
        options.requests,
        options.output_tokens or 1,
        options.seed,
        prefix=options.prefix_tokens * CHARACTERS_A_TOKEN,
        question=options.question_tokens * CHARACTERS_A_TOKEN,
        cold=options.cold,
    )


def _no_shared_prefix(options: Options) -> Workload:
    return workloads.no_shared_prefix(
        options.requests,
        options.output_tokens or 1,
        options.seed,
        prefix=options.prefix_tokens * CHARACTERS_A_TOKEN,
        question=options.question_tokens * CHARACTERS_A_TOKEN,
    )


def _sessions(options: Options) -> Workload:
    return workloads.sessions(
        options.requests,
        options.output_tokens or 1,
        options.seed,
        turns=options.turns,
        prefix=options.prefix_tokens * CHARACTERS_A_TOKEN,
        question=options.question_tokens * CHARACTERS_A_TOKEN,
    )


def _replay(options: Options) -> Workload:
    path = _dataset(options)
    return datasets.replay(path, options.requests, options.output_tokens, options.seed)


def _sharegpt(options: Options) -> Workload:
    return datasets.sharegpt(_dataset(options), options.requests, options.output_tokens)


def _custom(options: Options) -> Workload:
    return datasets.custom(_dataset(options), options.requests, options.output_tokens)


def _dataset(options: Options) -> Path:
    if options.dataset is None:
        raise GatewayError(f"--workload {options.workload} reads a file: name it with --dataset.")
    return options.dataset


WORKLOADS: Mapping[str, Callable[[Options], Workload]] = {
    "shared-prefix": _shared_prefix,
    "no-shared-prefix": _no_shared_prefix,
    "sessions": _sessions,
    "replay": _replay,
    "sharegpt": _sharegpt,
    "custom": _custom,
}
