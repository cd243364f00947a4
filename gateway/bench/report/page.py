"""A bench result as one HTML file.

The packages that write it, Jinja and Plotly, come with the extra `bench`. The file holds Plotly's
script (4.8 MB) and asks nobody for anything: its own policy forbids it to.
"""

from __future__ import annotations

from importlib import import_module
from importlib.resources import files
from types import ModuleType
from typing import Any, NamedTuple

from gateway import __version__
from gateway.bench.report import charts, points, repeat, words
from gateway.bench.report.looks import looks
from gateway.bench.report.parts import Chart
from gateway.bench.results import BenchResult
from gateway.errors import GatewayError
from gateway.extras import install

CONFIG = {"displayModeBar": False, "displaylogo": False, "responsive": True}


class Packages(NamedTuple):
    """What the extra `bench` brings, of which only this module knows."""

    jinja2: ModuleType
    plotly_io: ModuleType
    plotly_offline: ModuleType


def packages() -> Packages:
    """Import them.

    Raises:
        GatewayError: one is missing.
    """
    try:
        return Packages(*map(import_module, ("jinja2", "plotly.io", "plotly.offline")))
    except ImportError as error:
        raise GatewayError(
            f"The report needs the package {error.name}: {install('bench')}."
        ) from None


def render(result: BenchResult, packages: Packages) -> str:
    """The page."""
    jinja2 = packages.jinja2
    environment = jinja2.Environment(
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    template = environment.from_string(_file("page.html"))
    drawn = [(chart, _drawn(chart, packages)) for chart in all_charts(result)]
    return str(
        template.render(
            result=result,
            answers=words.answers(result),
            remarks=words.remarks(result),
            thresholds=words.thresholds(result),
            figures=words.figures(result),
            failures=words.failures(result),
            charts=drawn,
            engines=words.engines(result),
            client=words.client(result),
            command=repeat.command(result),
            load=repeat.described(result.load),
            notes=repeat.notes(result.load),
            version=__version__,
            plotly=packages.plotly_offline.get_plotlyjs(),
            style=_file("page.css"),
        )
    )


def all_charts(result: BenchResult) -> list[Chart]:
    """In the page's order."""
    seen = looks([arm.arm for arm in result.arms])
    over_time = points.over_time(result, seen)
    return [
        charts.distribution(result, seen),
        charts.trend(result, seen),
        points.by_length(result, seen),
        *([over_time] if over_time else []),
        *charts.memory(result, seen),
    ]


def _drawn(chart: Chart, packages: Packages) -> Any:
    """Its HTML: Plotly checks the figure, and writes no `<` into the script."""
    if chart.figure is None:
        return ""
    return packages.plotly_io.to_html(
        chart.figure,
        config=CONFIG,
        full_html=False,
        include_plotlyjs=False,
        div_id=f"plot-{chart.key}",
    )


def _file(name: str) -> str:
    return files(__package__).joinpath(name).read_text(encoding="utf-8")
