"""What the terminal shows: progress while it runs, then tables, a plot, and sentences."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from types import ModuleType
from typing import Self

from rich.console import Console, Group, RenderableType
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Column, Table
from rich.text import Text

from gateway.bench.report.parts import told
from gateway.bench.report.repeat import described
from gateway.bench.report.words import failures
from gateway.bench.results import ArmSummary, BenchResult, Round, Spread, ThresholdCheck

MOST_PLOT_COLUMNS = 76
PLOT_LINES = 12
MARKERS = "ox+*#@%&"
HEADROOM = 1.2
REDRAW = 0.5


class Bar:
    """Progress of the arm whose turn it is; its shape is `rounds.Progress`."""

    def __init__(self, console: Console, rounds: int) -> None:
        self._rounds = rounds
        self._progress = Progress(
            TextColumn("{task.description}", markup=False),
            BarColumn(),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
            console=console,
            transient=True,
            # A thread that draws would delay time stamps as it pleases.
            auto_refresh=False,
            disable=not console.is_terminal,
        )
        self._task = self._progress.add_task("")
        self._drawn = 0.0

    def __call__(self, arm: str, number: int, done: int, of: int) -> None:
        """Draws at the end of a turn, and else at most twice a second: it costs milliseconds."""
        now = self._progress.get_time()
        if done < of and now - self._drawn < REDRAW:
            return
        self._drawn = now
        what = f"round {number} of {self._rounds}" if number else "warm-up"
        self._progress.update(
            self._task, description=f"{what}, {told(arm)}", completed=done, total=of, refresh=True
        )

    def __enter__(self) -> Self:
        self._progress.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._progress.stop()


def render(result: BenchResult) -> RenderableType:
    """Everything there is to say of a run, but for the plot."""
    tokens = any(arm.figures.get("median_itl_ms") for arm in result.arms)
    parts: list[RenderableType] = [
        Text("Milliseconds: median of the rounds (smallest-largest)", style="italic"),
        _latencies(result.arms, tokens),
        _rates(result.arms),
    ]
    if any(_has(arm, "hit_rate", "kv_usage_peak", "gpu_memory_peak") for arm in result.arms):
        parts.append(_resources(result.arms))
    parts += [Text("\nP90 TTFT of each round", style="italic"), _trend(result.arms)]
    for title, lines in (
        ("Failed requests", _failures(result)),
        ("Load", ["; ".join(f"{name}: {value}" for name, value in described(result.load))]),
        ("Differences", [one.sentence for one in result.comparisons]),
        ("Thresholds", _thresholds(result.thresholds)),
        ("Remarks", [*_state(result), *result.remarks, *_cost(result.rounds)]),
    ):
        if lines:
            parts.append(Text(f"\n{title}", style="bold"))
            parts += [Text(f"- {line}", overflow="fold") for line in lines]
    return Group(*parts)


def _latencies(arms: Sequence[ArmSummary], tokens: bool) -> Table:
    table = _table(
        "TTFT P50", "P90", "P99", *(("ITL median", "P90") if tokens else ()), "end to end P50",
    )  # fmt: skip
    names = ["p50_ttft_ms", "p90_ttft_ms", "p99_ttft_ms"]
    names += ["median_itl_ms", "p90_itl_ms"] if tokens else []
    for arm in arms:
        cells = [_cell(arm.figures.get(name)) for name in (*names, "p50_e2el_ms")]
        table.add_row(told(arm.arm), *cells)
    return table


def _rates(arms: Sequence[ArmSummary]) -> Table:
    table = _table("Requests", "Failed", "Requests/s", "Good/s", "Tokens/s")
    for arm in arms:
        table.add_row(
            told(arm.arm),
            str(arm.requests),
            ", ".join(f"{count} {kind}" for kind, count in arm.errors.items()) or "0",
            _cell(arm.figures.get("request_throughput")),
            _cell(arm.figures.get("request_goodput")),
            _cell(arm.figures.get("output_throughput")),
        )
    return table


def _resources(arms: Sequence[ArmSummary]) -> Table:
    table = _table("Hit rate", "KV peak", "GPU memory peak", "GPU busy", "Chunk")
    for arm in arms:
        names = ("hit_rate", "kv_usage_peak", "gpu_memory_peak", "gpu_utilisation")
        cells = [_cell(arm.figures.get(name), percent=True) for name in names]
        chunk = arm.engine.get("max_num_batched_tokens")
        table.add_row(told(arm.arm), *cells, "-" if chunk is None else str(chunk))
    return table


def _trend(arms: Sequence[ArmSummary]) -> Table:
    rounds = max((arm.rounds for arm in arms), default=0)
    table = _table(*(str(n + 1) for n in range(rounds)))
    for arm in arms:
        spread = arm.figures.get("p90_ttft_ms")
        values = spread.values if spread else ()
        cells = ["-" if value is None else f"{value:.1f}" for value in values]
        table.add_row(told(arm.arm), *cells)
    return table


def _failures(result: BenchResult) -> list[str]:
    """A line a kind, as the report's table has it."""
    table = failures(result)
    rows = table.rows if table else ()
    return [f"{arm}: {count} {kind}; the first one said: {said}" for arm, kind, count, said in rows]


def _thresholds(checks: Sequence[ThresholdCheck]) -> list[str]:
    """A line each; what is the same for all arms once."""
    arms: dict[str, list[str]] = {}
    for one in checks:
        arms.setdefault(one.sentence, []).append(told(one.arm))
    return [f"{', '.join(names)}: {sentence}" for sentence, names in arms.items()]


def _state(result: BenchResult) -> Iterator[str]:
    if result.simulated:
        yield "An engine is simulated: these times say nothing about a real machine."
    if result.interrupted:
        turns = len(result.rounds)
        yield f"Ended early, after {turns} complete {'turn' if turns == 1 else 'turns'} of arms."


def _cost(rounds: Sequence[Round]) -> Iterator[str]:
    """The client's own cost, of the round in which it was highest."""
    shares = [one.client for one in rounds if one.client.ttft_share is not None]
    if not shares:
        return
    worst = max(shares, key=lambda cost: cost.ttft_share or 0.0)
    yield (
        f"The client's own cost, in its worst round: {100 * (worst.ttft_share or 0):.1f} % of the "
        f"median TTFT ({worst.send_ms:.2f} ms before sending, {worst.stamp_ms:.2f} ms until the "
        f"stamp, P99 {worst.stamp_p99_ms:.2f} ms), {worst.cpu_ms_per_request:.2f} ms of CPU a "
        f"request, {100 * worst.cpu_share:.0f} % of a core."
    )


def plot(result: BenchResult, plotext: ModuleType, columns: int) -> str:
    """P90 TTFT over the rounds, a line an arm.

    Args:
        plotext: the module; version 6.
    """
    figure = plotext.figure
    figure.clear()
    figure.plot_size(min(columns, MOST_PLOT_COLUMNS), PLOT_LINES)
    names, highest, rounds = [], 0.0, 1
    for arm, marker in zip(result.arms, MARKERS * len(result.arms), strict=False):
        spread = arm.figures.get("p90_ttft_ms")
        points = [(n + 1, value) for n, value in enumerate(spread.values if spread else ())]
        known = [(n, value) for n, value in points if value is not None]
        if known:
            line = figure.signal(*zip(*known, strict=True), marker=marker)
            line.lines()
            figure.draw(line)
            names.append(f"{marker} {told(arm.arm)}")
            highest = max(highest, *(value for _, value in known))
            rounds = max(rounds, len(points))
    figure.title(f"P90 TTFT by round, in ms: {', '.join(names)}")
    figure.ruler("y").lim(0, highest * HEADROOM)
    numbers = list(range(1, rounds + 1))
    figure.ruler("x").ticks(numbers, list(map(str, numbers)))
    return str(plotext.uncolorize(figure.build().string())).rstrip()


def _table(*names: str) -> Table:
    columns = [Column("Arm", overflow="fold"), *(Column(name, justify="right") for name in names)]
    return Table(*columns, box=None, pad_edge=False, padding=(0, 2, 0, 0))


def _cell(spread: Spread | None, *, percent: bool = False) -> str:
    if spread is None:
        return "-"
    numbers = (spread.median, spread.low, spread.high)
    if percent:
        median, low, high = (f"{100 * number:.1f} %" for number in numbers)
    else:
        median, low, high = (f"{number:.1f}" for number in numbers)
    return median if low == high else f"{median} ({low}-{high})"


def _has(arm: ArmSummary, *names: str) -> bool:
    return any(name in arm.figures for name in names)
