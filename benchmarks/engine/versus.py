"""Whether `gateway bench` measures what `vllm bench serve` measures: `python -m
benchmarks.engine.versus`.

Both send the same prompts to the same server, in turns. The server is the simulated engine without
a prefix cache, so that no round is helped by the one before; vLLM's tool runs from the environment
of the real engine.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from benchmarks.engine.install import Installation, installed, lacking
from benchmarks.engine.serving import ENVIRONMENT, START_TIMEOUT
from benchmarks.process import free_port, start, stop, wait_until_ready
from benchmarks.report import machine
from gateway.bench.results import read

MODEL = "simulated"
FIGURES = ("median_ttft_ms", "median_itl_ms", "median_tpot_ms", "median_e2el_ms")
"""Named alike in both results."""
LIMIT = 0.05
"""Medians may differ by as much."""
WORDS = 400
"""Of a prompt: vLLM leaves longer ones of this data set out."""

# `vllm` itself looks for a distribution that the CPU build does not have by that name.
_VLLM_BENCH = """
from vllm.benchmarks.serve import add_cli_args, main
from vllm.utils.argparse_utils import FlexibleArgumentParser
parser = FlexibleArgumentParser()
add_cli_args(parser)
main(parser.parse_args())
"""

Figures = Mapping[str, float]


class ToolFailed(RuntimeError):
    """One of the two tools failed; the message holds the end of what it said."""


@dataclass(frozen=True, slots=True)
class Plan:
    """What each tool sends in a round."""

    requests: int = 64
    concurrency: int = 8
    output_tokens: int = 16
    rounds: int = 5


@dataclass(frozen=True, slots=True)
class Agreement:
    """One figure by both tools: medians of rounds, and ours over theirs less one."""

    figure: str
    ours: float
    theirs: float

    @property
    def difference(self) -> float:
        return self.ours / self.theirs - 1

    @property
    def met(self) -> bool:
        return abs(self.difference) <= LIMIT


def main(arguments: Sequence[str] | None = None) -> int:
    """Compare; 0 if all medians agree, 1 if not, 2 if it could not be done."""
    options = _options(arguments)
    plan = Plan(options.requests, options.concurrency, options.output_tokens, options.rounds)
    reason = lacking()
    if reason:
        print(reason, file=sys.stderr)
        return 2
    with tempfile.TemporaryDirectory() as folder:
        try:
            rounds = measure(installed(), Path(folder), plan)
        except ToolFailed as error:
            print(error, file=sys.stderr)
            return 2
    agreements = judge(rounds)
    Console().print(_table(agreements, plan))
    if options.json:
        content = {"machine": machine(), "plan": asdict(plan), "rounds": rounds}
        options.json.write_text(json.dumps(content, indent=1) + "\n")
    return 0 if all(one.met for one in agreements) else 1


def judge(rounds: Sequence[Mapping[str, Figures]]) -> list[Agreement]:
    """Both tools' medians over the rounds, figure by figure."""
    return [
        Agreement(
            figure,
            ours=statistics.median(one["gateway"][figure] for one in rounds),
            theirs=statistics.median(one["vllm"][figure] for one in rounds),
        )
        for figure in FIGURES
    ]


def measure(installation: Installation, folder: Path, plan: Plan) -> list[dict[str, Figures]]:
    """The figures of both tools, round by round; who goes first alternates.

    Raises:
        ToolFailed, benchmarks.process.ServerFailed.
    """
    dataset = folder / "prompts.json"
    dataset.write_text(json.dumps(prompts(plan.requests)))
    port = free_port()
    engine = start(
        [*_gateway("sim"), "--port", str(port), "--no-enable-prefix-caching"],
        core=None,
        log=folder / "engine.log",
    )
    tools: list[tuple[str, Callable[[], Figures]]] = [
        ("gateway", lambda: _ours(folder, port, dataset, plan)),
        ("vllm", lambda: _theirs(installation, folder, port, dataset, plan)),
    ]
    try:
        wait_until_ready(engine, port, "/health", folder / "engine.log", START_TIMEOUT)
        return [
            {name: tool() for name, tool in tools[:: 1 if number % 2 else -1]}
            for number in range(plan.rounds)
        ]
    finally:
        stop(engine)


def prompts(count: int) -> list[dict[str, Any]]:
    """In ShareGPT's form, which both tools read. No two begin alike."""
    return [
        {
            "id": str(number),
            "conversations": [
                {"from": "human", "value": f"{number}. " + "word " * WORDS},
                {"from": "gpt", "value": "Some words that nobody is going to send."},
            ],
        }
        for number in range(count)
    ]


def _ours(folder: Path, port: int, dataset: Path, plan: Plan) -> Figures:
    result = folder / "gateway.json"
    _run(
        [
            *_gateway("bench"), "--url", f"http://127.0.0.1:{port}", "--model", MODEL,
            "--workload", "sharegpt", "--dataset", str(dataset),
            "--requests", str(plan.requests), "--concurrency", str(plan.concurrency),
            "--output-tokens", str(plan.output_tokens),
            "--rounds", "1", "--no-warm-up", "--json", str(result),
        ]
    )  # fmt: skip
    (done,) = read(result).rounds
    return {figure: done.figures[figure] or 0.0 for figure in FIGURES}


def _theirs(
    installation: Installation, folder: Path, port: int, dataset: Path, plan: Plan
) -> Figures:
    _run(
        [
            "env", "-i", f"HOME={folder}", "PATH=/usr/bin:/bin",
            *(f"{name}={value}" for name, value in ENVIRONMENT.items()),
            str(installation.python), "-c", _VLLM_BENCH,
            "--backend", "openai-chat", "--base-url", f"http://127.0.0.1:{port}",
            "--endpoint", "/v1/chat/completions",
            "--model", MODEL, "--tokenizer", str(installation.model),
            "--dataset-name", "sharegpt", "--dataset-path", str(dataset),
            "--sharegpt-output-len", str(plan.output_tokens),
            "--num-prompts", str(plan.requests), "--max-concurrency", str(plan.concurrency),
            "--percentile-metrics", "ttft,tpot,itl,e2el", "--disable-tqdm",
            "--save-result", "--result-dir", str(folder), "--result-filename", "vllm.json",
        ]
    )  # fmt: skip
    told = json.loads((folder / "vllm.json").read_text())
    if told["completed"] != plan.requests:
        raise ToolFailed(f"vllm bench serve completed {told['completed']} of {plan.requests}")
    return {figure: float(told[figure]) for figure in FIGURES}


def _gateway(command: str) -> list[str]:
    return [sys.executable, "-m", "gateway", command]


def _run(command: Sequence[str]) -> None:
    ran = subprocess.run(command, capture_output=True, text=True, check=False)
    if ran.returncode:
        end = "\n".join((ran.stdout + ran.stderr).splitlines()[-20:])
        raise ToolFailed(f"{command[-1]} ended with status {ran.returncode}:\n{end}")


def _table(agreements: Sequence[Agreement], plan: Plan) -> Table:
    table = Table(
        title=f"{plan.rounds} rounds of {plan.requests} requests, {plan.concurrency} at a time, "
        "against one simulated engine: medians in ms",
        title_justify="left",
    )
    for heading in ("figure", "gateway bench", "vllm bench serve", "difference", "at most 5 %"):
        table.add_column(heading)
    for one in agreements:
        met = "met" if one.met else "not met"
        figures = (f"{one.ours:.1f}", f"{one.theirs:.1f}", f"{100 * one.difference:+.1f} %")
        table.add_row(one.figure, *figures, met)
    return table


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.engine.versus", description=__doc__)
    plan = Plan()
    for name, help_text in (
        ("requests", "of each tool in a round"),
        ("concurrency", "requests at a time"),
        ("output_tokens", "of each answer"),
        ("rounds", "of both tools"),
    ):
        flag, default = f"--{name.replace('_', '-')}", getattr(plan, name)
        parser.add_argument(flag, type=int, default=default, help=f"{help_text} (%(default)s)")
    parser.add_argument("--json", type=Path, help="write the figures of every round to this file")
    return parser.parse_args(arguments)


if __name__ == "__main__":
    sys.exit(main())
