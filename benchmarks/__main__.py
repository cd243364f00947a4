"""The comparison: `python -m benchmarks --help`."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable, Sequence
from dataclasses import asdict
from functools import partial
from pathlib import Path

from rich.console import Console

from benchmarks import gates, measure, report, wrk
from benchmarks.contenders import ALL, chosen
from benchmarks.fleet import Cores, Fleet, Running, check_reply, launch
from benchmarks.process import ServerFailed
from benchmarks.workloads import CPU_WORKLOADS, FIRST_BYTE, Workload

OURS = ("gateway", "gateway-renamed")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the comparison; 0 if no gate is broken, 1 if one is, 2 if it could not be run."""
    options = _options(arguments)
    console = Console(highlight=False, width=120)
    if (reason := wrk.obstacle()) is not None:
        console.print(reason)
        return 2
    cores = Cores.pick()
    os.sched_setaffinity(0, {cores.load})
    with launch(chosen(options.only), cores) as fleet:
        for name, why in fleet.skipped.items():
            console.print(f"skipped {name}: {why}", markup=False)
        results = Comparison(fleet, cores, options.duration, console).run(options.rounds)
        skipped = fleet.skipped
    judged = [
        gate
        for name in OURS
        if name in results.contenders()
        for gate in gates.of_comparison(name, results.ratio, _added(results, name))
    ]
    console.print(report.table(results))
    for gate in judged:
        console.print(str(gate), markup=False)
    for (name, workload), why in results.failures.items():
        console.print(f"FAILED {name}, {workload}: {why}", markup=False)
    if options.json is not None:
        content = {
            "machine": report.machine(),
            "rounds": options.rounds,
            "seconds": options.duration,
            "skipped": skipped,
            "failures": [[*where, why] for where, why in results.failures.items()],
            "cpu": [asdict(sample) for sample in results.cpu],
            "first_byte": [asdict(sample) for sample in results.first_byte],
            "table": report.rows(results),
        }
        report.save(options.json, content, judged)
    broken = gates.failed(judged) or any(name in OURS for name, _ in results.failures)
    return 1 if broken or "gateway" in skipped else 0


class Comparison:
    """All contenders under all workloads, round by round, forward and backward in turn.

    Interleaving puts every contender's measurements beside nginx's in time, so that whatever
    else the machine does hits both; each round's quotient is taken within the round.
    """

    def __init__(self, fleet: Fleet, cores: Cores, seconds: float, console: Console) -> None:
        self._fleet = fleet
        self._cores = cores
        self._seconds = seconds
        self._console = console
        self._results = report.Results()

    def run(self, rounds: int) -> report.Results:
        """Check every reply once, then measure `rounds` times."""
        contenders = list(self._fleet.running.values())
        for running in contenders:
            for workload in (*CPU_WORKLOADS, FIRST_BYTE):
                self._attempt(running, workload, partial(check_reply, running, workload))
        for number in range(rounds):
            self._console.print(f"round {number + 1} of {rounds}", style="dim")
            order = contenders if number % 2 == 0 else contenders[::-1]
            for workload in CPU_WORKLOADS:
                for running in order:
                    self._attempt(running, workload, self._cpu(running, workload, number))
            for running in (self._fleet.direct, *order):
                self._attempt(running, FIRST_BYTE, self._first_byte(running, number))
        return self._results

    def _attempt(self, running: Running, workload: Workload, step: Callable[[], None]) -> None:
        """Take one step unless this contender failed this workload before."""
        where = (running.name, workload.name)
        if where in self._results.failures:
            return
        try:
            step()
        except (measure.LoadFailed, ServerFailed, OSError) as failure:
            self._results.failures[where] = str(failure) or type(failure).__name__

    def _cpu(self, running: Running, workload: Workload, number: int) -> Callable[[], None]:
        def step() -> None:
            sample = measure.cpu(running, workload, number, self._seconds, self._cores)
            self._results.cpu.append(sample)

        return step

    def _first_byte(self, running: Running, number: int) -> Callable[[], None]:
        def step() -> None:
            sample = measure.first_byte(running, number, self._seconds)
            self._results.first_byte.append(sample)

        return step


def _added(results: report.Results, name: str) -> float | None:
    added = results.added_ms(name)
    return None if added is None else added[0]


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks",
        description="CPU per request and added time to first byte of the gateway, nginx and "
        "other gateways, in one interleaved run. See benchmarks/README.md.",
        epilog="example: python -m benchmarks --only gateway,nginx --rounds 3 --duration 2",
    )
    parser.add_argument(
        "--only", default=",".join(ALL), metavar="NAMES", help="a part of %(default)s"
    )
    parser.add_argument("--rounds", type=int, default=5, help="default: %(default)s")
    parser.add_argument(
        "--duration",
        type=float,
        default=4.0,
        help="seconds of each measurement; default: %(default)s",
    )
    parser.add_argument("--json", type=Path, metavar="FILE", help="write every sample there")
    return parser.parse_args(arguments)


if __name__ == "__main__":
    sys.exit(main())
