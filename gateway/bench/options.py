"""What a run was asked for, checked as a whole, and the plan that follows from it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from gateway.bench.load import datasets, workloads
from gateway.bench.load.driver import Arrivals
from gateway.bench.load.workloads import CHARACTERS_A_TOKEN, ROUND_TOKENS, Workload
from gateway.bench.results import Load
from gateway.bench.rounds import Plan
from gateway.records import Api

ApiName = Literal["chat", "completions", "messages", "responses"]
WorkloadName = Literal[
    "shared-prefix", "no-shared-prefix", "sessions", "replay", "sharegpt", "custom"
]

USERS = 32
PREFIX_TOKENS = workloads.SYSTEM_CHARACTERS // CHARACTERS_A_TOKEN
QUESTION_TOKENS = workloads.QUESTION_CHARACTERS // CHARACTERS_A_TOKEN

MOST_REQUESTS = 1_000_000
MOST_TURNS = 100_000
PATIENCE = 600.0
"""Seconds for a request."""


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
        timeout: seconds for a request.
    """

    api: Api = Api.CHAT
    workload: WorkloadName = "shared-prefix"
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
    timeout: float = PATIENCE

    @property
    def shares_prefix(self) -> bool:
        return self.workload in ("shared-prefix", "sessions")

    @property
    def users(self) -> int | None:
        """How many requests may be under way; None for no limit."""
        return self.concurrency or (USERS if self.request_rate is None else None)


def check(options: Options) -> None:
    """Raises:
    ValueError: they do not go together, or ask for more than a client can hold; in a sentence.
    """
    reads = "dataset" in WORKLOADS[options.workload].options
    if reads and options.dataset is None:
        raise ValueError(f"--workload {options.workload} reads a file: name it with --dataset")
    length = options.prefix_tokens + options.question_tokens
    if not reads and options.requests * length > ROUND_TOKENS:
        raise ValueError(
            f"a round of {options.requests:,} requests of about {length:,} tokens each would be "
            f"{options.requests * length:,} tokens: at most {ROUND_TOKENS:,} are held ready. Send "
            "fewer requests a round (--requests), or shorter ones (--prefix-tokens, "
            "--question-tokens)"
        )


def plan_of(options: Options, arms: Sequence[str]) -> Plan:
    """Raises:
    GatewayError: the workload's file is none of its kind.
    OSError: it cannot be read.
    """
    rate = options.request_rate
    return Plan(
        arms=tuple(arms),
        rounds=options.rounds,
        workload=WORKLOADS[options.workload].make(options),
        concurrency=options.users,
        arrivals=None if rate is None else Arrivals(rate, options.burstiness),
        think=options.think,
        slo_ttft_ms=options.slo_ttft_ms,
        seed=options.seed,
        warm_up=options.warm_up,
    )


def load_of(options: Options) -> Load:
    """What the result says of it."""
    own = WORKLOADS[options.workload].options
    values = {name: getattr(options, name) for name in own - {"dataset"}}
    return Load(
        workload=options.workload,
        api=options.api,
        requests=options.requests,
        concurrency=options.users,
        request_rate=options.request_rate,
        burstiness=options.burstiness,
        output_tokens=options.output_tokens or (None if "dataset" in own else 1),
        rounds=options.rounds,
        seed=options.seed,
        slo_ttft_ms=options.slo_ttft_ms,
        dataset=_written(options.dataset.name) if options.dataset else None,
        extra=tuple(map(_written, options.extra)),
        timeout=options.timeout,
        warm_up=options.warm_up,
        **values,
    )


def _written(name: str) -> str:
    """As a file of UTF-8 can hold it, whatever bytes the name of a file is made of."""
    return name.encode(errors="replace").decode()


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
    assert options.dataset is not None, "`check` refuses the workload without it"
    return options.dataset


@dataclass(frozen=True, slots=True)
class Kind:
    """One workload.

    Attributes:
        make: raises GatewayError and OSError for the file it reads.
        options: those fields of `Options` that shape it and have no meaning for others.
    """

    make: Callable[[Options], Workload]
    options: frozenset[str]


_TEXTS = frozenset({"prefix_tokens", "question_tokens"})
_FILE = frozenset({"dataset"})

WORKLOADS: Mapping[WorkloadName, Kind] = {
    "shared-prefix": Kind(_shared_prefix, _TEXTS | {"cold"}),
    "no-shared-prefix": Kind(_no_shared_prefix, _TEXTS),
    "sessions": Kind(_sessions, _TEXTS | {"turns", "think"}),
    "replay": Kind(_replay, _FILE),
    "sharegpt": Kind(_sharegpt, _FILE),
    "custom": Kind(_custom, _FILE),
}

SHAPING = frozenset[str]().union(*(kind.options for kind in WORKLOADS.values()))
"""Fields of `Options` that only some workloads have a use for."""
