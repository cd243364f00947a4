"""The load of a run in words, and the command that sends it again. Pure."""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterator

from gateway.bench.analysis.thresholds import THRESHOLDS
from gateway.bench.results import BenchResult, Load

NEVER_KEPT = "Keys are not kept: the command takes them from GATEWAY_KEY and GATEWAY_ADMIN_KEY."
WARM_CACHES = (
    "The same seed sends the same texts, which engines that ran since may still have in their "
    "caches."
)
OLDER = (
    "An earlier version of the gateway wrote this file and did not keep --dataset, "
    "--prefix-tokens, --question-tokens, --cold, --turns, --think, --no-warm-up, --extra-body, "
    "--timeout, --engine, --dcgm and --gpu: add them where they were not the defaults."
)
FOLDER = "Of the data set the file's name is kept, not its folder: run the command where it lies."
VALUES = (
    "Of --extra-body the names of the fields are kept, not their values, which may be secret: "
    "put them in."
)


def described(load: Load) -> list[tuple[str, str]]:
    """Each option that shaped the load, named and in words."""
    return [(name, value) for name, value in _described(load) if value]


def _described(load: Load) -> Iterator[tuple[str, str]]:
    yield "Workload", load.workload
    yield "Data set", load.dataset or ""
    yield "API", load.api
    yield "Sent", _loop(load)
    yield "Requests a round", f"{load.requests:,}"
    yield "Rounds", f"{load.rounds:,}{_WARM_UP[load.warm_up]}"
    if load.prefix_tokens is not None:
        fresh = ", another one each round" if load.cold else ""
        yield "Long prompt", f"about {load.prefix_tokens:,} tokens{fresh}"
    if load.question_tokens is not None:
        yield "Question", f"about {load.question_tokens:,} tokens"
    if load.turns is not None:
        yield "Turns of a session", f"{load.turns:,}{_pause(load.think)}"
    yield (
        "Output tokens",
        "as the data set has"
        if load.output_tokens is None
        else (f"at most {load.output_tokens:,}"),
    )
    yield "Further fields", ", ".join(load.extra)
    yield "Timeout", "" if load.timeout is None else f"{_number(load.timeout)} s"
    yield "SLO", "" if load.slo_ttft_ms is None else f"{_number(load.slo_ttft_ms)} ms"
    yield "Seed", str(load.seed)


_WARM_UP = {True: ", after a warm-up", False: ", without a warm-up", None: ""}


def _loop(load: Load) -> str:
    if load.request_rate is None:
        return f"closed loop, {load.concurrency} at a time"
    limit = f", at most {load.concurrency} at a time" if load.concurrency else ""
    rate = f"{_number(load.request_rate)} arrivals a second"
    return f"open loop, {rate} of burstiness {_number(load.burstiness)}{limit}"


def _pause(think: float | None) -> str:
    return f", {_number(think)} s apart on average" if think else ""


def notes(load: Load) -> list[str]:
    """What to know before the command is run, a sentence each."""
    return [
        *([] if load.whole else [OLDER]),
        *([FOLDER] if load.dataset else []),
        *([VALUES] if load.extra else []),
        NEVER_KEPT,
        WARM_CACHES,
    ]


def command(result: BenchResult) -> str:
    """What does this run again, without keys.

    Values of further fields of the body are not known: with the `…` in their place the command is
    refused, rather than sending something else.
    """
    parts = (*_asked(result), *_shape(result.load), *_watched(result))
    return " \\\n  ".join(" ".join(map(shlex.quote, words)) for words in parts)


def _asked(result: BenchResult) -> Iterator[tuple[str, ...]]:
    yield "gateway", "bench", "--url", result.url, "--model", result.model
    for arm in result.arms:
        if arm.arm:
            yield "--arm", arm.arm


def _shape(load: Load) -> Iterator[tuple[str, ...]]:
    yield "--api", load.api, "--workload", load.workload
    yield "--requests", str(load.requests), "--rounds", str(load.rounds), "--seed", str(load.seed)
    if load.request_rate is not None:
        rate, burstiness = _number(load.request_rate), _number(load.burstiness)
        yield "--request-rate", rate, "--burstiness", burstiness
    for name, value in (
        ("--concurrency", load.concurrency),
        ("--dataset", load.dataset),
        ("--output-tokens", load.output_tokens),
        ("--prefix-tokens", load.prefix_tokens),
        ("--question-tokens", load.question_tokens),
        ("--turns", load.turns),
        ("--think", load.think),
        ("--timeout", load.timeout),
        ("--slo-ttft-ms", load.slo_ttft_ms),
    ):
        if value is not None:
            yield name, value if isinstance(value, str) else _number(value)
    if load.cold:
        yield ("--cold",)
    if load.warm_up is False:
        yield ("--no-warm-up",)
    if load.extra:
        fields = ", ".join(f"{json.dumps(name, ensure_ascii=False)}: …" for name in load.extra)
        yield "--extra-body", f"{{{fields}}}"


def _watched(result: BenchResult) -> Iterator[tuple[str, ...]]:
    for name, url in result.sources.engines.items():
        yield "--engine", f"{name}={url}"
    for url in result.sources.exporters:
        yield "--dcgm", url
    for gpu, arm in result.sources.gpus.items():
        yield "--gpu", f"{arm}={gpu}"
    limits = {one.name: one.limit for one in result.thresholds}
    for name in THRESHOLDS if result.arms else ():
        yield "--threshold", f"{name}={_number(limits[name]) if name in limits else 'off'}"


def _number(value: float) -> str:
    """In as many digits as it takes to read the same number back."""
    return repr(value).removesuffix(".0")
