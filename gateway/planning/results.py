"""Traffic from the results of `gateway bench`.

In a closed loop the first request of each user is sent at once to an engine that has rested, which
happens in no other moment: it loads the simulated engine as well, and its time counts nowhere.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, replace
from pathlib import Path

from gateway.bench.results import BenchResult, Load, Round, Sample, read
from gateway.errors import GatewayError
from gateway.planning.traffic import LONGEST_REQUEST, LONGEST_TIME, MOST_TOKENS, Request, Traffic


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """What a file holds.

    Attributes:
        traffic: of every engine, in each turn of its arm.
        block_size, max_num_seqs: of the engines, where the file tells them.
    """

    traffic: tuple[Traffic, ...]
    block_size: int | None
    max_num_seqs: int | None


def measured(path: Path, chunk: int | None = None) -> Measured:
    """Read the result of a bench run.

    Args:
        chunk: of all engines that were measured; None for what the results say of each arm.

    Raises:
        GatewayError: they are no results, do not say the chunk size or any time, or say what no
            engine does.
        OSError: they cannot be read.
    """
    result = read(path)
    chunks = {arm.arm: _told(arm.engine.get("max_num_batched_tokens")) for arm in result.arms}
    unknown = [name or path.name for name, known in chunks.items() if not (chunk or known)]
    if unknown:
        raise GatewayError(
            f"{path.name} does not say the max_num_batched_tokens of {', '.join(unknown)}: name "
            f"it as CHUNK={path.name}, such as 512={path.name}, or give `gateway bench` the "
            "admin key of a gateway that declares its engines."
        )
    differ = sorted({known for known in chunks.values() if known})
    if chunk and len(differ) > 1:
        raise GatewayError(
            f"{path.name} says that its arms had chunk sizes of {', '.join(map(str, differ))}, so "
            f"they cannot all have had {chunk}: name the file without {chunk}=."
        )
    _check(result, chunks, path)
    found = tuple(
        traffic
        for one in result.rounds
        for traffic in _engines(path, one, result.load, chunk or chunks[one.arm] or 0)
    )
    if not found:
        raise GatewayError(f"{path.name} holds no streamed reply with its token counts.")
    return Measured(
        traffic=found,
        block_size=_first(result, "block_size"),
        max_num_seqs=_first(result, "max_num_seqs"),
    )


def _check(result: BenchResult, arms: Collection[str], path: Path) -> None:
    """What no replay can follow, and what a bench never writes but somebody's editor may have."""
    _check_load(result.load, path)
    tokens = 0
    for turn in result.rounds:
        if turn.arm not in arms:
            raise GatewayError(
                f"{path.name} has rounds of {turn.arm!r}, which is none of its arms."
            )
        for one in turn.samples:
            counts = (one.prompt_tokens, one.cached_tokens, one.completion_tokens)
            times = (one.due_ms, one.ttft_ms, one.e2e_ms)
            if not (
                all(0 <= count <= LONGEST_REQUEST for count in counts if count is not None)
                and all(0 <= time <= LONGEST_TIME * 1000 for time in times if time is not None)
            ):
                raise GatewayError(
                    f"{path.name}, round {turn.number}, request {one.number}: tokens or times that "
                    "no engine has."
                )
            tokens += (one.prompt_tokens or 0) + (one.completion_tokens or 0)
    if tokens > MOST_TOKENS:
        raise GatewayError(
            f"{path.name}: its requests have {tokens} tokens, more than the {MOST_TOKENS} that can "
            "be replayed: measure fewer."
        )


def _check_load(load: Load, path: Path) -> None:
    if load.concurrency is None:
        return
    if load.concurrency < 1:
        raise GatewayError(f"{path.name} says that {load.concurrency} users sent its requests.")
    if load.request_rate is not None:
        raise GatewayError(
            f"{path.name}: its requests arrived at a rate, but at most {load.concurrency} at a "
            "time, so that some waited before any engine had them: measure without --concurrency."
        )
    if load.think:
        raise GatewayError(
            f"{path.name}: its users paused between their requests, and for how long is not "
            "known: measure without --think, or at a --request-rate."
        )


def _first(result: BenchResult, name: str) -> int | None:
    """Of the first arm whose engines tell it: arms that differ in more than the chunk compare
    badly anyway, and `gateway check` says so."""
    told = (_told(arm.engine.get(name)) for arm in result.arms)
    return next((value for value in told if value is not None), None)


def _told(value: object) -> int | None:
    return value if isinstance(value, int) and value > 0 else None


def _engines(path: Path, turn: Round, load: Load, chunk: int) -> list[Traffic]:
    """What each engine of an arm got in a turn, as far as replies name their backend."""
    parts: dict[str, list[Request]] = {}
    for one in sorted(turn.samples, key=lambda one: one.number):
        if (request := _request(one, turn.arm)) is not None:
            parts.setdefault(one.backend, []).append(request)
    users = load.concurrency
    if users is not None and len(parts) > 1:
        raise GatewayError(
            f"{path.name}: {turn.arm or 'what answered'} had {len(parts)} backends, and which of "
            f"them each of the {users} users would have asked next is not known: measure with one "
            "backend an arm, or at a --request-rate."
        )
    name = f"{path.stem}, round {turn.number}"
    return [
        Traffic(
            name=name if len(parts) == 1 else f"{name}, {backend}",
            chunk=chunk,
            requests=tuple(_without_first_times(requests, users)),
            users=users,
        )
        for backend, requests in parts.items()
    ]


def _without_first_times(requests: list[Request], users: int | None) -> list[Request]:
    """The first of each user met an engine that had rested, as no other does."""
    if users is None or len(requests) <= users:
        return requests
    return [replace(one, ttft=None, tpot=None) for one in requests[:users]] + requests[users:]


def _request(sample: Sample, arm: str) -> Request | None:
    """None if it failed, tells no tokens or ran on an engine of another arm.

    A failed one took its part of the engine, which nobody knows.
    """
    prompt, ttft = sample.prompt_tokens, sample.ttft_ms
    elsewhere = arm and sample.arm not in ("", arm)
    if sample.error is not None or elsewhere or not prompt or not ttft:
        return None
    return Request(
        at=sample.due_ms / 1000,
        prompt=prompt,
        cached=min(sample.cached_tokens or 0, prompt - 1),
        output=max(1, sample.completion_tokens or 1),
        ttft=ttft / 1000,
        tpot=_tpot(sample),
    )


def _tpot(sample: Sample) -> float | None:
    later = (sample.completion_tokens or 1) - 1
    if later < 1 or not sample.ttft_ms or (sample.e2e_ms or 0.0) <= sample.ttft_ms:
        return None
    return ((sample.e2e_ms or 0.0) - sample.ttft_ms) / 1000 / later
