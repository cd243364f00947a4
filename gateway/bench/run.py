"""A run from its trial request to its result, however it ends."""

from __future__ import annotations

import asyncio
import contextlib
import signal
import time
from collections.abc import Callable, Coroutine, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from importlib import import_module
from typing import Any, TypeVar

from rich.console import Console
from rich.text import Text

from gateway import __version__
from gateway.bench.analysis import fairness, thresholds
from gateway.bench.analysis.summary import compare, summarise
from gateway.bench.load import head
from gateway.bench.load.client import LoadClient
from gateway.bench.load.reading import sample_of
from gateway.bench.load.speech import PATHS, Speech
from gateway.bench.options import Options, load_of, plan_of
from gateway.bench.report import screen
from gateway.bench.results import BenchResult, ErrorKind, Round, Sample, Sources
from gateway.bench.rounds import Bench
from gateway.bench.watch.watches import Watched, watching
from gateway.errors import GatewayError
from gateway.extras import install

T = TypeVar("T")
SIMULATED = "made up by a simulated engine"
"""What the answers of `gateway sim` say of themselves: its headers stay behind a gateway."""
TRIAL_TOKENS = 16
STOPPING = (signal.SIGINT, signal.SIGTERM)


@dataclass(frozen=True, slots=True, kw_only=True)
class Subject:
    """What is measured, and with what.

    Attributes:
        url: where it stands, without `/v1`.
        key: sent as a Bearer token; empty for none.
        arms: by name; a single empty one leaves the choice to whoever answers.
        engines: facts of each arm's engines, as far as known.
        limits: thresholds by name.
        simulated: an engine is known to be simulated.
        said: what is known already and should be told, a sentence each.
        sources: who is asked besides, as the result tells it.
    """

    url: str
    key: str
    model: str
    arms: tuple[str, ...]
    options: Options
    engines: Mapping[str, Mapping[str, Any]]
    limits: Mapping[str, float]
    simulated: bool = False
    said: tuple[str, ...] = ()
    sources: Sources = field(default_factory=Sources)


async def bench(subject: Subject, watched: Watched, console: Console) -> BenchResult:
    """Run it all; ends early, with what is complete, when a signal of `STOPPING` comes.

    Raises:
        GatewayError: no arm answered, or the workload's file is none of its kind.
        OSError: a file of the workload cannot be read.
    """
    options = subject.options
    speech = Speech(options.api, subject.model, options.extra)
    plan = plan_of(options, subject.arms)
    stop = stopping()
    headers = f"authorization: Bearer {subject.key}\r\n".encode() if subject.key else b""
    path = PATHS[speech.api]
    async with (
        LoadClient(
            subject.url, path, headers, timeout=options.timeout, clock=time.monotonic
        ) as client,
        watching(watched) as watches,
    ):
        tried = await until_stopped(stop, usable_arms(plan.arms, client, speech, time.monotonic))
        if tried is None:
            raise GatewayError("Ended before the first round.")
        good, refused, simulated = tried
        for one in refused:
            # Now, too: whoever misspelt an arm need not wait for the rounds of the others.
            console.print(one)
        plan = replace(plan, arms=good)
        with screen.Bar(console, plan.rounds) as bar:
            work = Bench(
                plan, client, speech, engines=watches.engines, gpus=watches.gpus, progress=bar
            )
            rounds, interrupted = await collect(work, stop)
    subject = replace(
        subject, simulated=subject.simulated or simulated or watches.simulated, arms=good
    )
    said = (*subject.said, plan.workload.remark, *refused, *watches.said)
    return result(subject, rounds, [one for one in said if one], interrupted)


async def usable_arms(
    arms: Sequence[str], client: LoadClient, speech: Speech, clock: Callable[[], float]
) -> tuple[tuple[str, ...], tuple[str, ...], bool]:
    """Try each arm with one short request, so that no round is spent on what cannot succeed.

    Returns:
        The arms that answered, a sentence on each that did not, and whether a reply said that its
        engine is simulated.

    Raises:
        GatewayError: none answered.
    """
    good, refused, simulated = [], [], False
    for arm in arms:
        body = speech.request("", ["Hello"], TRIAL_TOKENS)
        exchange = await client.ask(body, clock(), head.arm(arm))
        simulated = simulated or SIMULATED in speech.answer(exchange)
        sample = sample_of(exchange, speech.api, origin=0.0)
        if sample.error in (None, ErrorKind.EMPTY):
            good.append(arm)
        else:
            refused.append(_refusal(arm, sample))
    if not good:
        raise GatewayError("\n".join(refused))
    return tuple(good), tuple(refused), simulated


def _refusal(arm: str, sample: Sample) -> str:
    what = f"status {sample.status}" if sample.error is ErrorKind.STATUS else str(sample.error)
    who = f"Arm {arm} was left out: its" if arm else "The"
    return f"{who} trial request failed ({what}): {sample.detail}"


async def collect(bench: Bench, stop: asyncio.Event) -> tuple[list[Round], bool]:
    """Run all rounds, or as many as are complete when `stop` is set.

    Returns:
        The rounds that count, and whether there should have been more.
    """
    found: list[Round] = []

    async def work() -> bool:
        async with aclosing(bench.run()) as rounds:
            async for one in rounds:
                if one.number:
                    found.append(one)
        return True

    complete = await until_stopped(stop, work())
    return found, not complete


async def until_stopped(stop: asyncio.Event, work: Coroutine[Any, Any, T]) -> T | None:
    """What the work comes to; None where `stop` was set first, which cancels it."""
    working = asyncio.create_task(work)
    stopped = asyncio.create_task(stop.wait())
    try:
        await asyncio.wait((working, stopped), return_when=asyncio.FIRST_COMPLETED)
        return working.result() if working.done() else None
    finally:
        stopped.cancel()
        working.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await working


def stopping() -> asyncio.Event:
    """Set when somebody wants to end the run."""
    stop = asyncio.Event()
    for name in STOPPING:
        asyncio.get_running_loop().add_signal_handler(name, stop.set)
    return stop


def result(
    subject: Subject, rounds: Sequence[Round], said: Sequence[str], interrupted: bool
) -> BenchResult:
    """Put a run's rounds together.

    Args:
        said: sentences that are known already.
    """
    arms = summarise(subject.arms, rounds, subject.engines)
    against = fairness.confounds(arms)
    return BenchResult(
        date=rounds[0].started if rounds else datetime.now(UTC).isoformat(timespec="milliseconds"),
        url=subject.url,
        model=subject.model,
        load=load_of(subject.options),
        arms=arms,
        rounds=tuple(rounds),
        comparisons=compare(arms, bool(against)),
        thresholds=thresholds.check(arms, subject.limits),
        remarks=(*said, *against, *fairness.remarks(arms, rounds)),
        simulated=subject.simulated,
        interrupted=interrupted,
        gateway_version=__version__,
        sources=subject.sources,
    )


def show(result: BenchResult, console: Console) -> None:
    """Print it, with a plot where the package for it is there."""
    console.print(screen.render(result))
    try:
        plotext = import_module("plotext")
    except ImportError:
        console.print(f"The plot was left out: {install('bench')}.")
        return
    if result.rounds:
        console.print(Text(screen.plot(result, plotext, console.width)))
