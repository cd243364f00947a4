"""`gateway bench`: load on arms or an engine, round by round."""

from __future__ import annotations

import secrets
import sys
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

import msgspec
import typer
import uvloop
from rich.console import Console

from gateway.bench import options, run
from gateway.bench.analysis import thresholds
from gateway.bench.load.workloads import LONGEST
from gateway.bench.options import SHAPING, USERS, WORKLOADS, ApiName, Options, WorkloadName
from gateway.bench.report import page
from gateway.bench.results import BenchResult, encode, read
from gateway.bench.run import Subject
from gateway.bench.watch.engines import Engine
from gateway.bench.watch.watches import Watched
from gateway.cli import bench_subject
from gateway.cli.key_form import origin
from gateway.cli.remote import ADMIN_KEY_VARIABLE
from gateway.cli.result_file import check_writable
from gateway.cli.usual_file import locate
from gateway.clients.setup import KEY_VARIABLE
from gateway.errors import GatewayError
from gateway.records import Api

MOST = 2**31 - 1
"""The largest integer that every reader of a request and of a result takes."""
DAY = 86400.0


def bench(
    context: typer.Context,
    url: Annotated[
        str | None,
        typer.Option(
            envvar="GATEWAY_URL",
            help="A gateway or an engine; else as gateway.yaml says, if there, or port 8080 here.",
        ),
    ] = None,
    key: Annotated[
        str,
        typer.Option(
            envvar=KEY_VARIABLE,
            help="Sent as a Bearer token; else the first of gateway.yaml.",
            show_default=False,
        ),
    ] = "",
    model: Annotated[str, typer.Option(help="By default the first that is listed.")] = "",
    arm: Annotated[
        list[str] | None, typer.Option(help="An arm to try, by name; once for each.")
    ] = None,
    api: Annotated[
        ApiName, typer.Option(metavar="NAME", help="chat, completions, messages, responses.")
    ] = "chat",
    workload: Annotated[
        WorkloadName, typer.Option(metavar="NAME", help=", ".join(WORKLOADS))
    ] = "shared-prefix",
    dataset: Annotated[Path | None, typer.Option(help="The file that a workload reads.")] = None,
    requests: Annotated[
        int, typer.Option(min=1, max=options.MOST_REQUESTS, help="In a round.")
    ] = 200,
    concurrency: Annotated[
        int | None,
        typer.Option(min=1, max=MOST, help=f"At a time; {USERS}, or any number with a rate."),
    ] = None,
    request_rate: Annotated[
        float | None,
        typer.Option(min=0.001, max=1e6, help="Arrivals a second: an open loop."),
    ] = None,
    burstiness: Annotated[
        float,
        typer.Option(
            min=0.01,
            max=1e6,
            help="Of arrivals: 1 is Poisson, less comes in bursts.",
        ),
    ] = 1.0,
    rounds: Annotated[int, typer.Option(min=1, max=MOST, help="That count.")] = 3,
    warm_up: Annotated[bool, typer.Option(help="Begin with a round that does not count.")] = True,
    output_tokens: Annotated[
        int | None,
        typer.Option(min=1, max=MOST, help="Of each answer, at most: 1, or as the data set has."),
    ] = None,
    prefix_tokens: Annotated[
        int, typer.Option(min=0, max=LONGEST, help="Of the shared prompt, about.")
    ] = options.PREFIX_TOKENS,
    question_tokens: Annotated[
        int, typer.Option(min=1, max=LONGEST, help="Of each question, about.")
    ] = options.QUESTION_TOKENS,
    cold: Annotated[bool, typer.Option("--cold", help="A new shared prompt each round.")] = False,
    turns: Annotated[int, typer.Option(min=1, max=options.MOST_TURNS, help="Of each session.")] = 3,
    think: Annotated[
        float,
        typer.Option(min=0, max=DAY, help="Mean seconds between turns."),
    ] = 0.0,
    slo_ttft_ms: Annotated[
        float | None,
        typer.Option(min=0, max=1e9, help="Goodput counts replies that begin within it."),
    ] = None,
    threshold: Annotated[
        list[str] | None, typer.Option(help="Such as p90=500, p99=280, memory=off.")
    ] = None,
    engine: Annotated[
        list[str] | None, typer.Option(help="NAME=URL of an engine; an arm's name makes it its.")
    ] = None,
    admin_key: Annotated[
        str,
        typer.Option(
            envvar=ADMIN_KEY_VARIABLE,
            help="Tells the engines; else admin.key of gateway.yaml.",
            show_default=False,
        ),
    ] = "",
    dcgm: Annotated[list[str] | None, typer.Option(help="URL of a dcgm-exporter.")] = None,
    gpu: Annotated[list[str] | None, typer.Option(help="ARM=0,1: whose GPUs are whose.")] = None,
    extra_body: Annotated[
        str, typer.Option(help="JSON fields of every request.", show_default=False)
    ] = "",
    timeout: Annotated[
        float, typer.Option(min=0.1, max=DAY, help="Seconds for a request.")
    ] = options.PATIENCE,
    seed: Annotated[
        int | None,
        typer.Option(
            min=-MOST, max=MOST, help="Of texts and pauses; new texts each time by default."
        ),
    ] = None,
    json_file: Annotated[
        Path | None, typer.Option("--json", help="Write all that was measured to this file.")
    ] = None,
    html: Annotated[
        Path | None, typer.Option(help="Write a report with charts to this file.")
    ] = None,
    saved: Annotated[
        Path | None, typer.Option("--from", help="Send nothing: show what --json wrote.")
    ] = None,
) -> None:
    """Measure the time to first token under load: of arms against each other, or of one engine.

    Without further options it sends the load of the article this project comes from: 200 requests,
    32 at a time, that share a prompt of about 1,600 tokens and differ in a short question, for one
    token each. Rounds go arm by arm, the first one does not count, and what is printed are medians
    of rounds with the smallest and largest. Ctrl-C prints what is complete.

    Thresholds (--threshold NAME=LIMIT or NAME=off): p90 and p99 of the time to first token in ms,
    memory (GPU, share), gpu (utilisation, share), hit-rate (prefix cache, share).

    Ends with status 0 once a round is complete, whatever failed in it and whichever thresholds
    hold: --json has that as thresholds[].held.

    Example: gateway bench --arm chunk-512 --arm chunk-2048 --json out.json

    Example: gateway bench --request-rate 20 --output-tokens 128 --slo-ttft-ms 500

    Example: gateway bench --url http://127.0.0.1:8001 --engine vllm=http://127.0.0.1:8001

    Example: gateway bench --from out.json --html out.html
    """
    given = _given(context)
    if saved is not None:
        _refuse(given.keys() - {"saved", "html"}, given, "--from sends nothing")
    # Before the work is done: whether its results can be written.
    packages = page.packages() if html else None
    check_writable(html)
    # Into a pipe, nothing is cut to a terminal's width.
    console = Console(width=None if sys.stdout.isatty() else 400, highlight=False, markup=False)

    def show(result: BenchResult) -> None:
        if html and packages:
            html.write_text(page.render(result, packages), encoding="utf-8")
        run.show(result, console)

    if saved is not None:
        show(read(saved))
        return
    useless = (given.keys() & SHAPING) - WORKLOADS[workload].options
    _refuse(useless, given, f"--workload {workload} has no use for it")
    if request_rate is None:
        _refuse(given.keys() & {"burstiness"}, given, "without --request-rate nothing arrives")
    asked = _checked(
        Options(
            api=Api(api),
            workload=workload,
            dataset=dataset,
            requests=requests,
            rounds=rounds,
            warm_up=warm_up,
            output_tokens=output_tokens,
            prefix_tokens=prefix_tokens,
            question_tokens=question_tokens,
            cold=cold,
            turns=turns,
            think=think,
            concurrency=concurrency,
            request_rate=request_rate,
            burstiness=burstiness,
            slo_ttft_ms=slo_ttft_ms,
            # The texts of an earlier run may be in the engines' caches.
            seed=secrets.randbelow(2**31) if seed is None else seed,
            extra=_object(extra_body),
            timeout=timeout,
        )
    )
    check_writable(json_file)
    limits = _limits(threshold or [], asked)
    arms = tuple(dict.fromkeys(arm or [""]))
    gateway = locate(url)
    root = gateway.address.root
    keys = {
        origin(key, KEY_VARIABLE, "--key"): key,
        origin(admin_key, ADMIN_KEY_VARIABLE, "--admin-key"): admin_key,
    }
    bench_subject.check_heads(root, keys, model, arms)
    key = key or gateway.client_key
    admin_key = admin_key or gateway.admin_key
    engines = bench_subject.engines_of(engine or [], arms)
    gpus = bench_subject.gpu_arms(gpu or [])
    sources = bench_subject.sources_of(engines, dcgm or (), gpus)
    model = model or bench_subject.first_model(root, key)
    backends, said = bench_subject.backends_of(root, admin_key, model)
    subject = Subject(
        url=root,
        key=key,
        model=model,
        arms=arms,
        options=asked,
        limits=limits,
        engines=bench_subject.facts_of(backends),
        simulated=any("simulated" in (one.engine_version or "") for one in backends),
        said=said,
        sources=sources,
    )
    watched = Watched(
        engines=engines or [Engine(one.name, one.url, one.arm) for one in backends],
        exporters=tuple(dcgm or ()),
        gpu_arms=gpus,
    )
    result = uvloop.run(run.bench(subject, watched, console))
    try:
        if json_file is not None:
            json_file.write_bytes(encode(result))
    finally:
        # A disk that is full by now does not cost what was measured.
        if result.rounds:
            show(result)
    if not result.rounds:
        raise GatewayError("No round was complete.")


def _given(context: typer.Context) -> dict[str, str]:
    """The options that stand on the command line, as they are written, by parameter."""
    found = {}
    for one in context.command.params:
        source = context.get_parameter_source(one.name or "")
        if one.name and source is not None and source.name == "COMMANDLINE":
            found[one.name] = "/".join((*one.opts, *one.secondary_opts))
    return found


def _refuse(names: Collection[str], given: Mapping[str, str], why: str) -> None:
    """What would be left unheeded is not taken."""
    if names:
        told = ", ".join(written for name, written in given.items() if name in names)
        raise typer.BadParameter(f"{why}: leave out {told}")


def _checked(asked: Options) -> Options:
    try:
        options.check(asked)
    except ValueError as error:
        raise typer.BadParameter(str(error)) from None
    return asked


def _object(text: str) -> Mapping[str, Any]:
    try:
        found = msgspec.json.decode(text) if text else {}
    except (msgspec.DecodeError, RecursionError, UnicodeEncodeError):
        found = None
    if not isinstance(found, dict):
        raise typer.BadParameter("is no JSON object", param_hint="--extra-body")
    return found


def _limits(wanted: Sequence[str], asked: Options) -> dict[str, float]:
    try:
        return thresholds.set_limits(thresholds.defaults(shares_prefix=asked.shares_prefix), wanted)
    except ValueError as error:
        raise typer.BadParameter(str(error), param_hint="--threshold") from None
