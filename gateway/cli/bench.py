"""`gateway bench`: load on arms or an engine, round by round."""

from __future__ import annotations

import json
import secrets
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

import typer
import uvloop
from pydantic import ValidationError
from rich.console import Console

from gateway.admin.backend_view import BackendView
from gateway.bench import run, thresholds
from gateway.bench.engines import Engine
from gateway.bench.options import USERS, WORKLOADS, Options
from gateway.bench.report import page
from gateway.bench.results import BenchResult, decode, encode
from gateway.bench.run import Subject
from gateway.bench.watches import Watched
from gateway.cli.address import option
from gateway.cli.answering import listed, unlisted
from gateway.cli.asking import Asker
from gateway.cli.key_form import sendable
from gateway.cli.remote import DEFAULT_URL, Remote
from gateway.cli.result_file import check_writable
from gateway.errors import GatewayError

PATIENCE = 5.0


def bench(
    url: Annotated[
        str,
        typer.Option(
            envvar="GATEWAY_URL",
            help="A gateway or an engine; port 8080 here by default.",
            show_default=False,
        ),
    ] = DEFAULT_URL,
    key: Annotated[
        str, typer.Option(envvar="GATEWAY_KEY", help="Sent as a Bearer token.", show_default=False)
    ] = "",
    model: Annotated[str, typer.Option(help="By default the first that is listed.")] = "",
    arm: Annotated[
        list[str] | None, typer.Option(help="An arm to try, by name; once for each.")
    ] = None,
    api: Annotated[str, typer.Option(help="chat, completions, messages, responses.")] = "chat",
    workload: Annotated[str, typer.Option(help=", ".join(WORKLOADS))] = "shared-prefix",
    dataset: Annotated[Path | None, typer.Option(help="The file that a workload reads.")] = None,
    requests: Annotated[int, typer.Option(min=1, help="In a round.")] = 200,
    concurrency: Annotated[
        int | None, typer.Option(min=1, help=f"At a time; {USERS}, or any number with a rate.")
    ] = None,
    request_rate: Annotated[
        float | None, typer.Option(min=0.001, max=1e6, help="Arrivals a second: an open loop.")
    ] = None,
    burstiness: Annotated[
        float,
        typer.Option(min=0.01, max=1e6, help="Of arrivals: 1 is Poisson, less comes in bursts."),
    ] = 1.0,
    rounds: Annotated[int, typer.Option(min=1, help="That count.")] = 3,
    warm_up: Annotated[bool, typer.Option(help="Begin with a round that does not count.")] = True,
    output_tokens: Annotated[
        int | None, typer.Option(min=1, help="Of each answer, at most: 1, or as the data set has.")
    ] = None,
    prefix_tokens: Annotated[int, typer.Option(min=0, help="Of the shared prompt, about.")] = 1600,
    question_tokens: Annotated[int, typer.Option(min=1, help="Of each question, about.")] = 20,
    cold: Annotated[bool, typer.Option("--cold", help="A new shared prompt each round.")] = False,
    turns: Annotated[int, typer.Option(min=1, help="Of each session.")] = 3,
    think: Annotated[
        float, typer.Option(min=0, max=86400, help="Mean seconds between turns.")
    ] = 0.0,
    slo_ttft_ms: Annotated[
        float | None, typer.Option(help="Goodput counts replies that begin within it.")
    ] = None,
    threshold: Annotated[
        list[str] | None, typer.Option(help="Such as p90=500, p99=280, memory=off.")
    ] = None,
    engine: Annotated[
        list[str] | None, typer.Option(help="NAME=URL of an engine; an arm's name makes it its.")
    ] = None,
    admin_key: Annotated[
        str,
        typer.Option(envvar="GATEWAY_ADMIN_KEY", help="Tells the engines.", show_default=False),
    ] = "",
    dcgm: Annotated[list[str] | None, typer.Option(help="URL of a dcgm-exporter.")] = None,
    gpu: Annotated[list[str] | None, typer.Option(help="ARM=0,1: whose GPUs are whose.")] = None,
    extra_body: Annotated[
        str, typer.Option(help="JSON fields of every request.", show_default=False)
    ] = "",
    timeout: Annotated[float, typer.Option(min=0.1, help="Seconds for a request.")] = 600.0,
    seed: Annotated[
        int | None, typer.Option(help="Of texts and pauses; new texts each time by default.")
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

    Example: gateway bench --arm chunk-512 --arm chunk-64 --json out.json

    Example: gateway bench --request-rate 20 --output-tokens 128 --slo-ttft-ms 500

    Example: gateway bench --url http://127.0.0.1:8001 --engine vllm=http://127.0.0.1:8001

    Example: gateway bench --from out.json --html out.html
    """
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
        show(decode(saved.read_bytes(), saved.name))
        return
    options = Options(
        api=api,
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
    )
    check_writable(json_file)
    limits = _limits(threshold or [], options)
    arms = tuple(dict.fromkeys(arm or [""]))
    root = option(url).root
    if key and not sendable(key):
        raise typer.BadParameter("holds characters no key has", param_hint="--key")
    model = model or _first_model(root, key)
    backends, said = _backends(root, admin_key, model)
    subject = Subject(
        url=root,
        key=key,
        model=model,
        timeout=timeout,
        arms=arms,
        options=options,
        limits=limits,
        engines=_facts(backends),
        simulated=any("simulated" in (one.engine_version or "") for one in backends),
        said=said,
    )
    watched = Watched(
        engines=_engines(engine or [], arms, backends),
        exporters=tuple(dcgm or ()),
        gpu_arms=_gpu_arms(gpu or []),
    )
    result = uvloop.run(run.bench(subject, watched, console))
    try:
        if json_file is not None:
            json_file.write_bytes(encode(result))
    finally:
        # A disk that is full by now does not cost what was measured.
        show(result)
    if not result.rounds:
        raise GatewayError("No round was complete.")


def _object(text: str) -> Mapping[str, Any]:
    try:
        found = json.loads(text) if text else {}
    except ValueError:
        found = None
    if not isinstance(found, dict):
        raise typer.BadParameter("is no JSON object", param_hint="--extra-body")
    return found


def _limits(wanted: Sequence[str], options: Options) -> dict[str, float]:
    try:
        return thresholds.set_limits(
            thresholds.defaults(shares_prefix=options.shares_prefix), wanted
        )
    except ValueError as error:
        raise typer.BadParameter(str(error), param_hint="--threshold") from None


def _first_model(root: str, key: str) -> str:
    answer = Asker(PATIENCE)(f"{root}/v1/models", key=key)
    models = listed(answer)
    if not models:
        raise GatewayError(f"{unlisted(root, answer)} Set --url, GATEWAY_KEY, or --model.")
    return str(models[0]["id"])


def _backends(root: str, admin_key: str, model: str) -> tuple[list[BackendView], tuple[str, ...]]:
    """The model's backends, as the admin API tells them; and a sentence where it does not.

    An admin key may be left over in the environment of somebody who asks an engine itself.
    """
    if not admin_key:
        return [], ()
    try:
        told = Remote(root, admin_key).get("backends")
        found = [BackendView.model_validate(one) for one in told]
    except (GatewayError, ValidationError) as error:
        why = error.message if isinstance(error, GatewayError) else "Its answer has another form."
        return [], (f"The admin API of {root} named no engines: {why}",)
    own = [one for one in found if one.model == model.partition("@")[0]] or found
    return own, tuple(
        f"Backend {one.name} is not what its configuration says: {'; '.join(one.differences)}."
        for one in own
        if one.differences
    )


def _facts(backends: Sequence[BackendView]) -> dict[str, dict[str, Any]]:
    """What is declared of each arm's engines, and over it what they say themselves; of several
    engines, the first that says it."""
    facts: dict[str, dict[str, Any]] = {}
    for one in reversed(backends):
        declared = one.engine.model_dump(exclude_none=True, mode="json") if one.engine else {}
        declared |= one.running.model_dump(exclude_none=True) if one.running else {}
        if one.engine_version:
            declared["engine_version"] = one.engine_version
        facts[one.arm] = facts.get(one.arm, {}) | declared
    return facts


def _engines(
    given: Sequence[str], arms: Sequence[str], backends: Sequence[BackendView]
) -> list[Engine]:
    if not given:
        return [Engine(one.name, one.url, one.arm) for one in backends]
    found = []
    for one in given:
        name, _, url = one.partition("=")
        if not name or not url:
            raise typer.BadParameter(f"{one} is no NAME=URL", param_hint="--engine")
        found.append(Engine(name, option(url).root, name if name in arms else ""))
    return found


def _gpu_arms(given: Sequence[str]) -> dict[str, str]:
    found: dict[str, str] = {}
    for one in given:
        arm, _, names = one.partition("=")
        if not arm or not names:
            raise typer.BadParameter(f"{one} is no ARM=0,1", param_hint="--gpu")
        found |= dict.fromkeys(names.split(","), arm)
    return found
