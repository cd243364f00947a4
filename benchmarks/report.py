"""Medians over rounds, the table, and the file that keeps everything."""

from __future__ import annotations

import os
import platform
import statistics
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec
from rich.table import Table

from benchmarks.fleet import DIRECT
from benchmarks.gates import Gate
from benchmarks.measure import CpuSample, FirstByteSample
from benchmarks.workloads import CPU_WORKLOADS, FIRST_BYTE, PACED

REFERENCE = "nginx"
SATURATED_MS = 1000.0
"""A median beyond this says that the requests queue up: the rate is more than a proxy bears."""


@dataclass(slots=True)
class Results:
    """All samples of one run; `failures` tells, by contender and workload, what went wrong.

    A contender that failed a workload is not measured under it, however well it did before.
    """

    cpu: list[CpuSample] = field(default_factory=list)
    first_byte: list[FirstByteSample] = field(default_factory=list)
    failures: dict[tuple[str, str], str] = field(default_factory=dict)

    def cpu_us(self, contender: str, workload: str) -> float | None:
        """Median over rounds of the CPU of one request, in microseconds."""
        return _median(list(self._by_round(contender, workload).values()))

    def ratio(self, contender: str, reference: str, workload: str) -> float | None:
        """Median over rounds of the quotient within a round, in which both ran side by side."""
        return _median(self.ratios(contender, reference, workload))

    def ratios(self, contender: str, reference: str, workload: str) -> list[float]:
        """The quotient of each round that both have."""
        below = self._by_round(reference, workload)
        above = self._by_round(contender, workload)
        return [above[number] / below[number] for number in above if number in below]

    def added_ms(self, contender: str) -> tuple[float, float] | None:
        """Added time to first byte in ms: median, and 99th percentile.

        The median is the median over rounds of the difference of medians within a round; the
        99th percentile is that of all requests, less the median of those without a proxy.
        """
        direct = {s.round: s.seconds for s in self.first_byte if s.contender == DIRECT}
        mine = {s.round: s.seconds for s in self.first_byte if s.contender == contender}
        medians = [
            statistics.median(mine[number]) - statistics.median(direct[number])
            for number in mine
            if number in direct
        ]
        if not medians or (contender, FIRST_BYTE.name) in self.failures:
            return None
        everything = sorted(second for seconds in mine.values() for second in seconds)
        base = statistics.median(second for seconds in direct.values() for second in seconds)
        late = everything[min(len(everything) - 1, int(len(everything) * 0.99))]
        return statistics.median(medians) * 1e3, (late - base) * 1e3

    def contenders(self) -> list[str]:
        """Names in the order of first appearance, without the stub itself."""
        names = [s.contender for s in self.cpu] + [s.contender for s in self.first_byte]
        names += [name for name, _ in self.failures]
        return [name for name in dict.fromkeys(names) if name != DIRECT]

    def _by_round(self, contender: str, workload: str) -> dict[int, float]:
        return {
            sample.round: sample.cpu_us
            for sample in self.cpu
            if (sample.contender, sample.workload) == (contender, workload)
            and (contender, workload) not in self.failures
        }


def table(results: Results) -> Table:
    """CPU as multiples of nginx (its own in µs), and the added time to first byte."""
    shown = Table(title="CPU per request, as multiples of nginx; added time to first byte")
    shown.add_column("")
    for workload in CPU_WORKLOADS:
        shown.add_column(workload.name, justify="right")
    shown.add_column("added TTFB at 100/s,\nmedian (p99), ms", justify="right")
    for name in results.contenders():
        cells = [_cell(results, name, workload.name) for workload in CPU_WORKLOADS]
        shown.add_row(name, *cells, _added(results, name))
    return shown


def rows(results: Results) -> dict[str, dict[str, Any]]:
    """The table as data: for each contender and workload µs and multiple of nginx."""
    shown: dict[str, dict[str, Any]] = {}
    for name in results.contenders():
        added = results.added_ms(name)
        shown[name] = {
            workload.name: {
                "cpu_us": results.cpu_us(name, workload.name),
                "times_nginx": results.ratio(name, REFERENCE, workload.name),
                "times_nginx_by_round": results.ratios(name, REFERENCE, workload.name),
            }
            for workload in CPU_WORKLOADS
        }
        shown[name]["added_ttfb_ms"] = added and {"median": added[0], "p99": added[1]}
    return shown


def _cell(results: Results, name: str, workload: str) -> str:
    if (name, workload) in results.failures:
        return "failed"
    spent = results.cpu_us(name, workload)
    ratio = results.ratio(name, REFERENCE, workload)
    if spent is None:
        return "-"
    absolute = f"{spent:.0f} µs"
    if workload == PACED.name:
        absolute = f"{spent / PACED.events:.0f} µs/event"
    if ratio is None:
        return absolute
    return f"1 ({absolute})" if name == REFERENCE else f"{ratio:.3g}"


def _added(results: Results, name: str) -> str:
    if (name, FIRST_BYTE.name) in results.failures:
        return "failed"
    added = results.added_ms(name)
    if added is None:
        return "-"
    return "saturated" if added[0] > SATURATED_MS else f"{added[0]:.2f} ({added[1]:.1f})"


def machine() -> dict[str, Any]:
    """What it was measured on, and which commit."""
    cpus = Path("/proc/cpuinfo").read_text().splitlines()
    models = [line.partition(":")[2].strip() for line in cpus if line.startswith("model name")]
    git = ["git", "-C", str(Path(__file__).parent), "rev-parse", "--short", "HEAD"]
    commit = subprocess.run(git, capture_output=True, text=True, check=False).stdout.strip()
    return {
        "cpu": models[0] if models else platform.machine(),
        "cores": len(os.sched_getaffinity(0)),
        "kernel": platform.release(),
        "python": platform.python_version(),
        "at": datetime.now(UTC).isoformat(timespec="seconds"),
        "commit": commit or None,
    }


def save(path: Path, content: dict[str, Any], gates: Sequence[Gate]) -> None:
    """Write everything as JSON, the gates with their states."""
    path.parent.mkdir(parents=True, exist_ok=True)
    encoded = msgspec.json.encode(content | {"gates": [gate.row() for gate in gates]})
    path.write_bytes(msgspec.json.format(encoded) + b"\n")


def _median(values: Sequence[float]) -> float | None:
    return statistics.median(values) if values else None
