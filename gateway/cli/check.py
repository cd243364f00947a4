"""`gateway check`: what a configuration means, in plain words."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from gateway.cli.check_engine import check_engine
from gateway.cli.engine_file import EngineVersion
from gateway.cli.main import WRONG
from gateway.cli.meaning import KeyMeaning, Meaning, ModelMeaning, meaning
from gateway.cli.table import plain_table
from gateway.cli.usual_file import USUAL_FILE, File, SameFile, named_file
from gateway.errors import ConfigError
from gateway.settings import load
from gateway.settings.comparison import Comparison


def check(
    file: File = None,
    config: SameFile = None,
    engine: Annotated[
        Path | None, typer.Option(help="Check an engine configuration instead.", metavar="FILE")
    ] = None,
    engine_version: EngineVersion = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print it for programs.")] = False,
) -> None:
    """Say in plain words what a configuration means, or list every fault in it.

    Shows each model's arms and shares, whether they compare fairly, who may ask for what, and
    what is left out. The environment counts as it does for gateway serve; weights set in a
    running gateway do not. Ends with status 2 if there are faults.

    With --engine, says of a configuration of vLLM what its chunk and cache settings do in a
    version, and which of its flags that version has. Ends with status 2 if vLLM would refuse it.

    Example: gateway check gateway.yaml

    Example: gateway check --engine deploy/vllm/chunk-64.yaml --engine-version 0.32
    """
    file = named_file(file, config)
    if engine is not None:
        if file is not None:
            raise typer.BadParameter("give a configuration or --engine FILE, not both")
        check_engine(engine, engine_version, as_json=as_json)
        return
    if engine_version is not None:
        raise typer.BadParameter("--engine-version goes with --engine FILE")
    path = file or USUAL_FILE
    if as_json:
        _show_json(path)
    else:
        _Page().show(path, meaning(load(path, os.environ)))


def _show_json(file: Path) -> None:
    try:
        answer = {"ok": True, **asdict(meaning(load(file, os.environ)))}
    except ConfigError as error:
        answer = {"ok": False, "faults": error.faults}
    typer.echo(json.dumps(answer, indent=2))
    if not answer["ok"]:
        raise typer.Exit(WRONG)


class _Page:
    """Writes to the terminal; into a pipe a line is a line, without colours."""

    def __init__(self) -> None:
        wide = None if sys.stdout.isatty() else 1000
        self._console = Console(width=wide, highlight=False, markup=False)

    def show(self, file: Path, found: Meaning) -> None:
        arms = sum(len(model.arms) for model in found.models)
        self._console.print(
            f"{file} has no faults: {_counted(len(found.models), 'model')}, "
            f"{_counted(arms, 'arm')}, {_counted(found.backends, 'backend')}, "
            f"{_counted(len(found.keys), 'key')}."
        )
        for model in found.models:
            self._model(model)
        self._keys(found.keys)
        if found.remarks:
            self._heading("Worth knowing")
            self._points(found.remarks)

    def _model(self, model: ModelMeaning) -> None:
        self._heading(f"Model {model.name}")
        if model.aliases:
            self._line(f"also answers to {', '.join(model.aliases)}")
        if model.upstream_model != model.name:
            self._line(f"its engines call it {model.upstream_model}")
        goal = f", first token within {model.slo_ttft_ms:g} ms" if model.slo_ttft_ms else ""
        self._line(f"experiment {model.experiment}, split by {model.unit}{goal}")
        rows = [
            (
                arm.name,
                arm.role or "-",
                f"{arm.weight:g}",
                _percent(arm.share),
                _percent(arm.load_per_backend),
                ", ".join(arm.backends),
            )
            for arm in model.arms
        ]
        self._table(("ARM", "ROLE", "WEIGHT", "SHARE", "PER BACKEND", "BACKENDS"), rows)
        if model.comparison is not None:
            self._comparison(model.comparison)

    def _comparison(self, comparison: Comparison) -> None:
        pair = f"{', '.join(comparison.others)} against {comparison.reference}"
        if comparison.confounded:
            self._line(
                f"{pair}: confounded. It can stop a canary that is worse in spite of less load, "
                "never promote one:"
            )
        else:
            self._line(f"{pair}: comparable, as far as the configuration says.")
        self._points(comparison.confounded)
        if comparison.cautions:
            self._line("Bear in mind:")
        self._points(comparison.cautions)

    def _keys(self, keys: Sequence[KeyMeaning]) -> None:
        self._heading("Keys")
        rows = [
            (
                key.name,
                "all" if "*" in key.models else ", ".join(key.models),
                _limit(key.requests_per_minute),
                _limit(key.tokens_per_minute),
                _limit(key.max_concurrency),
                key.arms if isinstance(key.arms, str) else ", ".join(key.arms),
            )
            for key in keys
        ]
        headings = ("KEY", "MODELS", "REQUESTS/MIN", "TOKENS/MIN", "AT ONCE", "ARMS BY HAND")
        self._table(headings, rows)

    def _heading(self, text: str) -> None:
        self._console.print()
        self._console.print(Text(text, style="bold"))

    def _line(self, text: str) -> None:
        self._console.print(Padding(Text(text), (0, 0, 0, 2), expand=False))

    def _points(self, texts: Sequence[str]) -> None:
        for text in texts:
            grid = Table.grid(padding=(0, 1, 0, 0))
            grid.add_row("  -", Text(text))
            self._console.print(grid)

    def _table(self, headings: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
        table = plain_table(headings, rows)
        self._console.print(Padding(table, (0, 0, 0, 2), expand=False))


def _counted(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def _percent(share: float) -> str:
    return f"{100 * share:.3g} %"


def _limit(value: int | None) -> str:
    return "-" if value is None else str(value)
