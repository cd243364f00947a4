"""`gateway check --engine`: what an engine configuration does in a version of vLLM."""

from __future__ import annotations

import json
import sys
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from textwrap import fill

import typer

from gateway.cli.engine_file import load_engine
from gateway.cli.main import WRONG
from gateway.errors import ConfigError
from gateway.vllm import NEWEST, Finding, Severity, Version, check


def check_engine(file: Path, version: Version | None, *, as_json: bool) -> None:
    """Print what is found; ends with status 2 if the engine would refuse it."""
    try:
        config = load_engine(file)
    except ConfigError as error:
        if not as_json:
            raise
        typer.echo(json.dumps({"ok": False, "faults": error.faults}, indent=2))
        raise typer.Exit(WRONG) from None
    target = version or config.engine_version or NEWEST
    found = check(config, target)
    refused = any(one.severity is Severity.ERROR for one in found)
    if as_json:
        answer = {
            "ok": not refused,
            "engine_version": str(target),
            "findings": [asdict(one) for one in found],
        }
        typer.echo(json.dumps(answer, indent=2))
    else:
        typer.echo(_page(file, target, found))
    if refused:
        raise typer.Exit(WRONG)


def _page(file: Path, version: Version, found: Sequence[Finding]) -> str:
    head = f"{file} for vLLM {version}: {_counts(found)}."
    return "\n".join([head, *map(_told, found)])


def _counts(found: Sequence[Finding]) -> str:
    if not found:
        return "nothing to say against it"
    counts = Counter(one.severity for one in found)
    return ", ".join(
        f"{counts[severity]} {severity}{'s' if counts[severity] > 1 else ''}"
        for severity in Severity
        if counts[severity]
    )


def _told(one: Finding) -> str:
    details = {"holds for": one.versions, "try": one.advice, "source": one.source}
    lines = [
        _wrapped(f"{one.severity}: {one.field}: {one.reason}", ""),
        *(_wrapped(f"{label + ':':<11}{text}", "  ") for label, text in details.items()),
    ]
    return "\n" + "\n".join(lines)


def _wrapped(text: str, indent: str) -> str:
    """For a terminal; into a pipe a line is a line."""
    if not sys.stdout.isatty():
        return indent + text
    return fill(
        text,
        width=100,
        initial_indent=indent,
        subsequent_indent=" " * (13 if indent else 2),
        break_long_words=False,
        break_on_hyphens=False,
    )
