"""`gateway plan`: what another chunk size would do to recorded traffic."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict
from importlib import import_module
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.progress import track
from rich.table import Table
from rich.text import Text

from gateway.cli.result_file import check_writable
from gateway.cli.table import plain_table
from gateway.errors import GatewayError
from gateway.extras import install
from gateway.planning import calibration, picture
from gateway.planning.calibration import Calibration
from gateway.planning.fit import FIGURES
from gateway.planning.log import Recorded, recorded
from gateway.planning.plan import Answer, advice, answer, observed

FAMILY = (64, 128, 256, 512, 1024, 2048)
HEADINGS = {"ttft": "TTFT", "tpot": "per token"}


def plan(
    log: Annotated[Path, typer.Argument(help="The gateway's access log.", show_default=False)],
    calibrated: Annotated[
        Path,
        typer.Option("--calibration", help="What gateway sim --fit wrote.", show_default=False),
    ],
    chunk: Annotated[
        list[int] | None,
        typer.Option(min=1, max=2**31, help="max_num_batched_tokens to try; 64 to 2048 if none."),
    ] = None,
    model: Annotated[str, typer.Option(help="Only this model's requests.")] = "",
    arm: Annotated[str, typer.Option(help="Only this arm's.")] = "",
    last: Annotated[int, typer.Option(min=1, max=10**7, help="Of the log, at most.")] = 10_000,
    json_file: Annotated[
        Path | None, typer.Option("--json", help="Write the answer to this file.")
    ] = None,
) -> None:
    """Ask a simulated engine, fitted to yours, what other chunk sizes would do to your traffic.

    Requests come when the access log says they were sent, as long as they were, with as much of
    them cached: each engine gets its own. What is printed is simulated, and beside it by how much
    such predictions were off when the calibration was made.

    Example: gateway plan access.jsonl --calibration h100.json --chunk 256 --chunk 1024
    """
    check_writable(json_file)
    fitted = calibration.read(calibrated)
    found = recorded(log, model=model, arm=arm, last=last)
    seen = observed(found)
    if not seen.figures:
        raise GatewayError(
            f"{log.name}: of {found.requests} requests none was streamed to its first token, so "
            "there is no time to compare."
        )
    chunks = sorted(set(chunk or FAMILY))
    answers = [seen] + [
        answer(found, fitted, one)
        for one in track(chunks, "Simulating", console=Console(stderr=True), transient=True)
    ]
    if json_file is not None:
        json_file.write_text(json.dumps(_content(found, fitted, answers), indent=1) + "\n")
    _show(Console(soft_wrap=True), found, fitted, answers)


def _content(found: Recorded, fitted: Calibration, answers: Sequence[Answer]) -> dict[str, object]:
    return {
        "simulated": True,
        "requests": found.requests,
        "left_out": found.left_out,
        "engines": [one.name for one in found.engines],
        "fitted_to": list(fitted.sources),
        "answers": [asdict(one) for one in answers],
    }


def _show(
    console: Console, found: Recorded, fitted: Calibration, answers: Sequence[Answer]
) -> None:
    engines = f"{len(found.engines)} engine{'s' if len(found.engines) > 1 else ''}"
    console.print(
        Text(
            f"{found.requests} requests to {engines}, replayed on a simulated engine that was "
            f"fitted to {', '.join(fitted.sources)}. Milliseconds, ± how far off such "
            "predictions were when it was fitted."
        )
    )
    console.print(_table(answers))
    _draw(console, answers)
    for line in advice(answers):
        console.print(Text(line))
    for line in _remarks(found, fitted, answers):
        console.print(Text(f"- {line}"))


def _draw(console: Console, answers: Sequence[Answer]) -> None:
    """A picture, where the package for it is there and there is more than one thing to see."""
    simulated = [one for one in answers if one.chunk is not None and one.figures]
    if len(simulated) < 2:
        return
    try:
        plotext = import_module("plotext")
    except ImportError:
        console.print(Text(f"The picture was left out: {install('bench')}."))
        return
    console.print(Text(picture.plot(simulated, plotext, console.width)))


def _table(answers: Sequence[Answer]) -> Table:
    headings = [f"{HEADINGS[name]} P{percent}" for name, percent in FIGURES]
    rows = []
    for one in answers:
        cells = {(figure.name, figure.percent): figure for figure in one.figures}
        row = ["measured" if one.chunk is None else f"{one.chunk}, simulated"]
        for key in FIGURES:
            figure = cells.get(key)
            if figure is None:
                row.append("-")
                continue
            margin = "" if figure.margin is None else f" ± {figure.margin:.0%}"
            row.append(f"{figure.value * 1e3:.1f}{margin}")
        rows.append(row)
    return plain_table(("Chunk", *headings), rows)


def _remarks(found: Recorded, fitted: Calibration, answers: Sequence[Answer]) -> list[str]:
    said = []
    if not fitted.held_out:
        said.append(
            "How far off this is is not known: the calibration saw one chunk size only. Fit it "
            "to results at two or more."
        )
    said += [
        f"At {one.chunk} the simulated engine does not keep up with {', '.join(one.behind)}: its "
        "times depend on how long the log is."
        for one in answers
        if one.behind
    ]
    outside = [
        str(one.chunk)
        for one in answers
        if one.chunk and not fitted.chunks[0] <= one.chunk <= fitted.chunks[-1]
    ]
    if outside:
        said.append(
            f"Outside of the chunk sizes that were measured: {', '.join(outside)} "
            f"({fitted.chunks[0]} to {fitted.chunks[-1]}). Further off than ± says, perhaps."
        )
    if not any(request.cached for one in found.engines for request in one.requests):
        said.append(
            "No request tells of cached tokens, so that all are computed here. Engines tell them "
            "with --enable-prompt-tokens-details; where yours cached some, simulated times are "
            "too long."
        )
    if found.left_out:
        said.append(
            "Left out, since nobody told their tokens or none was generated: "
            f"{found.left_out} of {found.left_out + found.requests} requests. The real engines "
            "had more to do."
        )
    return said
