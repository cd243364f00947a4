"""One arm's answers in the playground: the latest as it comes, and the medians of all."""

from __future__ import annotations

from nicegui import ui

from gateway.console.asking import Run, medians
from gateway.console.pages.parts import Heading, Text, fact, milliseconds


class Answer:
    """A card.

    Attributes:
        run: the latest.
    """

    def __init__(self, arm: str, colour: str) -> None:
        self.run = Run()
        self._runs: list[Run] = []
        with ui.element("section").classes("card arm").style(f"--arm: {colour}"):
            Heading(2, arm)
            with ui.element("div").classes("big"):
                self._ttft = _figure("TTFT", f"{arm}-ttft")
                self._inter = _figure("Inter-token", f"{arm}-inter-token")
                self._total = _figure("Total", f"{arm}-total")
            with ui.element("dl").classes("one"):
                self._medians = fact("Medians")
                self._tokens = fact("Tokens")
            self._error = ui.label().classes("notice")
            self._error.set_visibility(False)
            self._text = Text("div").classes("said").props('tabindex="0" role="region"')
            self._text.props(f'aria-label="Answer of {arm}"').mark(f"{arm}-text")

    def begin(self, run: Run) -> None:
        self.run = run
        self._runs.append(run)

    def show(self) -> None:
        run = self.run
        self._ttft.text = milliseconds(run.ttft)
        self._inter.text = milliseconds(run.inter_token)
        self._total.text = milliseconds(run.total)
        self._text.text = run.text
        self._error.text = run.error or ""
        self._error.set_visibility(run.error is not None)
        self._tokens.text = _tokens(run)
        found = medians(self._runs)
        self._medians.text = (
            f"{milliseconds(found.ttft)}, {milliseconds(found.inter_token)}, "
            f"{milliseconds(found.total)} over {found.runs}"
        )


def _figure(name: str, marker: str) -> ui.label:
    with ui.element("div"):
        ui.label(name).classes("help")
        return ui.label().classes("figure").mark(marker)


def _tokens(run: Run) -> str:
    if run.usage is None:
        return "-"
    usage = run.usage
    return f"{usage.prompt:,} in ({usage.cached:,} cached), {usage.completion:,} out"
