"""What chunk sizes would do, drawn in a terminal."""

from __future__ import annotations

from collections.abc import Sequence
from types import ModuleType

from gateway.planning.plan import Answer

LINES = 12
MOST_COLUMNS = 80
HEADROOM = 1.25
MARKERS = {50: "o", 90: "x"}


def plot(answers: Sequence[Answer], plotext: ModuleType, columns: int) -> str:
    """Simulated TTFT by chunk size, a line for each percentile.

    Args:
        answers: of chunk sizes, without what was recorded.
        plotext: the module; version 6.
    """
    places = list(range(1, len(answers) + 1))
    figure = plotext.figure
    figure.clear()
    figure.plot_size(min(columns, MOST_COLUMNS), LINES)
    highest = 0.0
    for percent, marker in MARKERS.items():
        values = [
            1000 * one.value
            for answer in answers
            for one in answer.figures
            if (one.name, one.percent) == ("ttft", percent)
        ]
        if len(values) != len(places):
            continue
        line = figure.signal(places, values, marker=marker)
        line.lines()
        figure.draw(line)
        highest = max(highest, *values)
    figure.title("Simulated TTFT by chunk size, in ms: o P50, x P90")
    figure.ruler("y").lim(0, highest * HEADROOM)
    figure.ruler("x").ticks(places, [str(one.chunk) for one in answers])
    return str(plotext.uncolorize(figure.build().string())).rstrip()
