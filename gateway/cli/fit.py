"""`gateway sim --fit`: step times from measurements, and how far to trust them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from gateway.cli.result_file import check_writable
from gateway.cli.table import plain_table
from gateway.planning import calibration
from gateway.planning.calibration import Calibration
from gateway.planning.results import measured

BLOCK_SIZE = 16
MAX_NUM_SEQS = 128
MOST = 2**20
NAMES = {"ttft": "time to first token", "tpot": "time per later token"}


def calibrate(
    sources: Sequence[str],
    *,
    block_size: int | None,
    max_num_seqs: int | None,
    json_file: Path | None,
) -> None:
    """Fit, print, and write.

    Args:
        sources: files, each as `FILE` or `CHUNK=FILE`.
        block_size, max_num_seqs: of the measured engines; None for what the files say, or vLLM's
            own defaults.

    Raises:
        GatewayError, OSError: as `measured`, `calibration.calibrate`.
        typer.BadParameter: an option is none of an engine.
    """
    for name, value in (("--block-size", block_size), ("--max-num-seqs", max_num_seqs)):
        if value is not None and not 1 <= value <= MOST:
            raise typer.BadParameter(f"must be from 1 to {MOST}", param_hint=name)
    check_writable(json_file)
    paths = [_source(source) for source in sources]
    files = [measured(path, chunk) for chunk, path in paths]
    told = [(one.block_size, one.max_num_seqs) for one in files]
    console = Console(soft_wrap=True)
    with Console(stderr=True).status("Fitting, and predicting each chunk size from the others …"):
        found = calibration.calibrate(
            [traffic for one in files for traffic in one.traffic],
            [path.name for _, path in paths],
            block_size=block_size or _first(size for size, _ in told) or BLOCK_SIZE,
            max_num_seqs=max_num_seqs or _first(seqs for _, seqs in told) or MAX_NUM_SEQS,
        )
    if json_file is not None:
        json_file.write_bytes(calibration.encode(found))
    _show(found, console)
    if json_file is not None:
        console.print(
            f"\nWritten to {json_file.name}; use it: gateway sim --calibration, gateway plan."
        )


def _first(values: Iterable[int | None]) -> int | None:
    return next((value for value in values if value is not None), None)


def _source(text: str) -> tuple[int | None, Path]:
    head, equals, rest = text.partition("=")
    if not text or (equals and not rest):
        raise typer.BadParameter(f"{text!r} names no file", param_hint="--fit")
    if equals and head.isdecimal():
        if not 0 < int(head) <= 2**31:
            raise typer.BadParameter(f"{head} is no chunk size", param_hint="--fit")
        return int(head), Path(rest)
    return None, Path(text)


def _shown(value: float) -> str:
    """Three digits; what a fit found next to nothing is nothing."""
    return "0" if value < 0.001 else f"{value:.3g}"


def _show(found: Calibration, console: Console) -> None:
    latency = found.machine.latency
    chunks = ", ".join(map(str, found.chunks))
    console.print(
        Text(
            f"A step takes {_shown(latency.base * 1e3)} ms, "
            f"{_shown(latency.per_token * 1e6)} µs a token and "
            f"{_shown(latency.per_pair * 1e9)} ns for each token it attends to; a request "
            f"{found.machine.overhead * 1e3:.3g} ms more. Fitted to {found.requests} requests at "
            f"chunk sizes of {chunks}."
        )
    )
    if not found.machine.overhead:
        console.print(
            Text(
                "What a request takes outside of the engine's steps is not known: nobody found it "
                "resting. An open loop (gateway bench --request-rate) with some pauses tells."
            )
        )
    worst = found.error("ttft")
    if worst is None:
        console.print(
            Text("How far off it is at other chunk sizes is not known: measure two or more.")
        )
        return
    console.print(Text("\nEach chunk size, predicted from the others", style="bold"))
    console.print(_table(found))
    console.print(Text(f"\nTimes to first token are off by {worst:.0%} at most."))


def _table(found: Calibration) -> Table:
    rows = [
        (
            str(one.chunk),
            f"{NAMES[one.figure]}, P{one.percent}",
            f"{one.measured * 1e3:.1f}",
            f"{one.predicted * 1e3:.1f}",
            f"{one.error:+.0%}",
        )
        for one in found.held_out
    ]
    return plain_table(("Chunk", "Figure", "Measured, ms", "Predicted, ms", "Off by"), rows)
