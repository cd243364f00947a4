"""`gateway doctor`: why does a client not get through, or not in time?"""

from __future__ import annotations

import os
import sys
from collections import Counter
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from gateway.cli.address import Address, option
from gateway.cli.asking import Asker
from gateway.cli.doctor.caches import WATCH
from gateway.cli.doctor.case import Case
from gateway.cli.doctor.examination import TOPICS, examine
from gateway.cli.doctor.finding import Finding, Severity
from gateway.cli.main import FAILED
from gateway.cli.masking import Mask
from gateway.cli.remote import ADMIN_KEY_VARIABLE, show_json
from gateway.cli.usual_file import DEFAULT_URL, locate, usual_file
from gateway.clients.setup import KEY_VARIABLE
from gateway.errors import ConfigError

TIMEOUT = 5.0
"""Seconds a server may take over each question that generates nothing."""

_STYLE = {Severity.OK: "green", Severity.WARNING: "yellow", Severity.ERROR: "bold red"}


def doctor(
    url: Annotated[
        str | None,
        typer.Option(
            envvar="GATEWAY_URL",
            help="The base URL clients were given; else as the gateway's file says, or port 8080 "
            "here.",
        ),
    ] = None,
    key: Annotated[
        str,
        typer.Option(envvar=KEY_VARIABLE, help="The key clients send.", show_default=False),
    ] = "",
    model: Annotated[
        str, typer.Option(envvar="GATEWAY_MODEL", help="The model id clients ask for.")
    ] = "",
    config: Annotated[
        Path | None,
        typer.Option("--config", "-c", help="The gateway's file; else gateway.yaml, if there."),
    ] = None,
    admin_key: Annotated[
        str,
        typer.Option(envvar=ADMIN_KEY_VARIABLE, help="admin.key of that file.", show_default=False),
    ] = "",
    request: Annotated[
        Path | None,
        typer.Option(help="A file with the JSON body of a request that goes wrong."),
    ] = None,
    only: Annotated[
        list[str] | None,
        typer.Option(metavar="TOPIC", help=f"One topic, or several: {', '.join(TOPICS)}."),
    ] = None,
    watch: Annotated[
        float | None,
        typer.Option(
            min=0,
            max=600,
            metavar="SECONDS",
            help=f"Time between two looks at the engines' counters; else {WATCH:g} s where one "
            "is at work, and none where not. 0: count since their start.",
            show_default=False,
        ),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print it for programs.")] = False,
) -> None:
    """Walk the troubleshooting list: what is wrong, why it matters, and the line that fixes it.

    Looks at the address, proxy variables, the base URL, the key, an answer, the files of Codex
    and Claude Code, and what makes first tokens late. It changes nothing; one request for one
    token is sent, and counts like any other. Secrets are never shown. Ends with status 1 if
    there is an error.

    For one thing alone: gateway doctor --only codex. For a body of your own: gateway doctor
    --request body.json.

    Example: gateway doctor --url http://127.0.0.1:8080/v1 --model llama-3-70b -c gateway.yaml
    """
    unknown = sorted(set(only or ()) - set(TOPICS))
    if unknown:
        raise typer.BadParameter(
            f"{unknown[0]!r} is none of {', '.join(TOPICS)}", param_hint="--only"
        )
    mask = Mask((key, admin_key))
    mask.learn(os.environ)
    case = Case(
        address=_address(url, config),
        given_key=key,
        given_model=model,
        given_admin_key=admin_key,
        config=usual_file() if config is None else config,
        named=config is not None,
        request=request,
        env=os.environ,
        home=Path.home(),
        folder=Path.cwd(),
        ask=Asker(TIMEOUT),
        watch=watch,
        mask=mask,
    )
    counts = (
        _as_json(case, only or ()) if as_json else _Page(url is not None).show(case, only or ())
    )
    if counts[Severity.ERROR]:
        raise typer.Exit(FAILED)


def _address(url: str | None, config: Path | None) -> Address:
    try:
        return locate(url, config).address
    except ConfigError:
        # What is wrong with the file is a finding.
        return option(url or DEFAULT_URL)


def _as_json(case: Case, only: list[str] | tuple[str, ...]) -> Counter[Severity]:
    found = [finding for _, findings in examine(case, only) for finding in findings]
    counts = Counter(finding.severity for finding in found)
    answer = {
        "url": case.address.given,
        "errors": counts[Severity.ERROR],
        "warnings": counts[Severity.WARNING],
        "findings": [asdict(finding) for finding in found],
    }
    show_json(answer)
    return counts


class _Page:
    """Writes each finding as it is found; into a pipe a line is a line, without colours."""

    def __init__(self, url_given: bool) -> None:
        self._terminal = sys.stdout.isatty()
        self._console = Console(highlight=False, markup=False)
        self._url_given = url_given

    def show(self, case: Case, only: list[str] | tuple[str, ...]) -> Counter[Severity]:
        given = "" if self._url_given else " Another address goes in GATEWAY_URL or --url."
        self._console.print(f"Examining {case.address.given}.{given}")
        counts: Counter[Severity] = Counter()
        for step, findings in examine(case, only):
            self._console.print()
            self._console.print(Text(step.title, style="bold"))
            with self._console.status("asking …"):
                for finding in findings:
                    counts[finding.severity] += 1
                    self._finding(finding)
        self._console.print()
        self._console.print(Text(_summary(counts), style=_worst(counts)))
        return counts

    def _finding(self, finding: Finding) -> None:
        word = Text(f"  {finding.severity:<8}", style=_STYLE[finding.severity])
        blank = Text(" " * len(word))
        rows = [
            (word, Text(finding.seen)),
            (blank, Text(finding.why, style="dim")),
            (blank, Text(f"Fix: {finding.fix}" if finding.fix else "")),
        ]
        grid = Table.grid()
        for first, text in rows:
            if text and self._terminal:
                grid.add_row(first, text)
            elif text:
                self._console.print(first + text, soft_wrap=True)
        if self._terminal:
            self._console.print(grid)


def _summary(counts: Mapping[Severity, int]) -> str:
    errors, warnings = counts.get(Severity.ERROR, 0), counts.get(Severity.WARNING, 0)
    if not errors and not warnings:
        return "Nothing is wrong."
    return f"{_counted(errors, 'error')}, {_counted(warnings, 'warning')}."


def _counted(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def _worst(counts: Mapping[Severity, int]) -> str:
    for severity in (Severity.ERROR, Severity.WARNING):
        if counts.get(severity):
            return _STYLE[severity]
    return _STYLE[Severity.OK]
