"""The report in a real browser without a network."""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Literal

import pytest
from playwright.sync_api import Browser, Page, ViewportSize, expect, sync_playwright

from gateway.bench.report import page as report
from gateway.bench.results import BenchResult
from tests.bench.report.made import LOAD, two_arms
from tests.bench.report.test_page import EVIL, evil

CHROMIUM = shutil.which("chromium")
PICTURES = Path(__file__).parents[3] / "out" / "screenshots"
SIZES: dict[str, ViewportSize] = {
    "wide": {"width": 1280, "height": 900},
    "phone": {"width": 390, "height": 844},
}
LOOKS: tuple[Literal["light", "dark"], ...] = ("light", "dark")
CHARTS = ("distribution", "trend", "length", "time", "kv-usage", "gpu-memory")
pytestmark = [
    pytest.mark.service,
    pytest.mark.timeout(240),  # a busy machine makes a browser slow, not wrong
    pytest.mark.skipif(CHROMIUM is None, reason="chromium is not installed"),
]


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with sync_playwright() as playwright:
        expect.set_options(timeout=60_000)
        found = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield found
        found.close()


@pytest.fixture
def opened(browser: Browser, tmp_path: Path) -> Iterator[Page]:
    """A page with no network; in the end it has asked nobody, and nothing went wrong."""
    context = browser.new_context(offline=True, viewport=SIZES["wide"])
    context.set_default_timeout(120_000)
    page = context.new_page()
    asked: list[str] = []
    wrong: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    page.on("pageerror", lambda error: wrong.append(str(error)))
    page.on("console", lambda said: wrong.append(said.text) if said.type == "error" else None)
    page.on("dialog", lambda dialog: wrong.append(dialog.message))
    yield page
    context.close()
    assert [url for url in asked if not url.startswith(("file:", "data:"))] == []
    assert wrong == []


def show(page: Page, result: BenchResult, folder: Path) -> None:
    file = folder / "out.html"
    file.write_text(report.render(result, report.packages()), encoding="utf-8")
    page.goto(file.as_uri())


def whole() -> BenchResult:
    load = replace(LOAD, request_rate=10.0, concurrency=None)
    return two_arms(simulated=True, load=load)


def test_every_chart_is_drawn_in_its_arms_colours(opened: Page, tmp_path: Path) -> None:
    show(opened, whole(), tmp_path)
    for name in CHARTS:
        chart = opened.locator(f"#plot-{name}")
        box = chart.locator("svg.main-svg").first.bounding_box()
        assert box is not None and box["width"] > 600 and box["height"] > 300, name
        labels = chart.locator(".legendtext")
        expect(labels).to_have_text(["chunk-512", "chunk-64"])
        drawn = chart.locator(".scatterlayer path").evaluate_all(
            "paths => paths.map(one => getComputedStyle(one).stroke + getComputedStyle(one).fill)"
        )
        colours = " ".join(drawn)
        assert "rgb(42, 125, 225)" in colours and "rgb(224, 112, 26)" in colours, (name, colours)
    # Three rounds of two arms.
    assert opened.locator("#plot-kv-usage .scatterlayer .point").count() == 6
    assert opened.locator("#plot-length .scatterlayer .trace").first.locator(".point").count() == 30
    dashes = opened.locator("#plot-trend .js-line").evaluate_all(
        "lines => lines.map(one => getComputedStyle(one).strokeDasharray)"
    )
    assert len(set(dashes)) == 2, "without colour, lines differ by their dashes"


def test_hostile_names_are_shown_and_do_nothing(opened: Page, tmp_path: Path) -> None:
    show(opened, evil(), tmp_path)
    expect(opened.locator("h1")).to_have_text(f"Time to first token of {EVIL}")
    legend = opened.locator("#plot-trend .legendtext").first
    expect(legend).to_contain_text("</script><script>alert(1)")
    assert opened.locator("img").count() == 0
    opened.set_viewport_size(SIZES["phone"])
    fits(opened, SIZES["phone"])


def test_the_keyboard_reaches_every_table(opened: Page, tmp_path: Path) -> None:
    show(opened, whole(), tmp_path)
    names, tables = [], set()
    for _ in range(40):
        opened.keyboard.press("Tab")
        names.append(opened.evaluate("document.activeElement.innerText.trim()"))
        if names[-1] == "These figures as a table":
            tables.add(opened.evaluate("document.activeElement.closest('section').id"))
    assert names[:3] == ["Skip to the answer", "Answer", "Figures"]
    assert tables == set(CHARTS)
    summary = opened.locator("#trend summary")
    summary.focus()
    expect(opened.locator("#trend table")).to_be_hidden()
    opened.keyboard.press("Enter")
    expect(opened.locator("#trend table")).to_be_visible()
    expect(opened.locator("#trend tbody tr").first).to_have_text(
        re.compile(r"1\s*108.1 ms\s*208.1")
    )


def test_light_and_dark_wide_and_narrow(opened: Page, tmp_path: Path) -> None:
    show(opened, whole(), tmp_path)
    PICTURES.mkdir(parents=True, exist_ok=True)
    inks = {}
    for size, viewport in SIZES.items():
        opened.set_viewport_size(viewport)
        for look in LOOKS:
            opened.emulate_media(color_scheme=look)
            svg = opened.locator("#plot-trend svg.main-svg").first
            expect(svg).to_have_js_property("clientWidth", _width(opened))
            inks[look] = opened.locator("#plot-trend .xtick text").first.evaluate(
                "one => getComputedStyle(one).fill"
            )
            opened.screenshot(path=PICTURES / f"report-{size}-{look}.png", full_page=True)
        fits(opened, viewport)
    assert inks == {"light": "rgb(28, 36, 48)", "dark": "rgb(230, 234, 240)"}


def fits(page: Page, viewport: ViewportSize) -> None:
    """Nothing is wider than the screen, once charts had the time to follow it."""
    expect(page.locator("html")).to_have_js_property("scrollWidth", viewport["width"])


def _width(page: Page) -> int:
    return int(page.locator("#trend .chart").evaluate("one => one.clientWidth"))
