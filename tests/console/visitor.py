"""What the browser tests see and do: visitors, parts of pages, pictures."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from playwright.sync_api import (
    BrowserContext,
    ConsoleMessage,
    Locator,
    Page,
    ViewportSize,
    expect,
)

PICTURES = Path(__file__).parents[2] / "out" / "screenshots"
SIZES: dict[str, ViewportSize] = {
    "wide": {"width": 1280, "height": 900},
    "phone": {"width": 390, "height": 844},
}
LOOKS: tuple[Literal["light", "dark"], ...] = ("light", "dark")


@dataclass
class Visitor:
    """A browser of its own; it notes whom it asks for anything, and what goes wrong."""

    context: BrowserContext
    asked: list[str]
    wrong: list[str]

    def page(self, path: str = "/") -> Page:
        """A page of its own; those before it are closed, since open ones go on drawing."""
        for one in self.context.pages:
            one.close()
        page = self.context.new_page()
        page.on("websocket", lambda one: self.asked.append(one.url))
        page.on("pageerror", lambda error: self.wrong.append(str(error)))
        page.on("console", self._hear)
        page.goto(path)
        return page

    def _hear(self, said: ConsoleMessage) -> None:
        if said.type == "error":
            self.wrong.append(said.text)


def sign_in(page: Page, key: str, name: str = "Ada") -> None:
    page.get_by_label("Admin key").fill(key)
    page.get_by_label("Your name").fill(name)
    page.get_by_role("button", name="Sign in").click()
    expect(page.get_by_role("heading", name="Overview")).to_be_visible()
    expect(figure(page, "chunk-512", "P50")).to_have_text(re.compile(r"\d"))


def arm_card(page: Page, arm: str) -> Locator:
    return page.locator(".card.arm").filter(has=page.get_by_role("heading", name=arm, exact=True))


def figure(page: Page, arm: str, name: str) -> Locator:
    label = page.get_by_text(name, exact=True)
    return arm_card(page, arm).locator(".big > div").filter(has=label).locator(".figure")


def fact(page: Page, arm: str, name: str) -> Locator:
    row = arm_card(page, arm).locator("dl > div").filter(has=page.get_by_text(name, exact=True))
    return row.locator("dd")


def count(page: Page, arm: str) -> int:
    return int(fact(page, arm, "Requests").inner_text().replace(",", ""))


def server(page: Page, name: str) -> Locator:
    heading = page.get_by_role("heading", name=name, level=3, exact=True)
    return page.locator(".card").filter(has=heading).filter(has_text="Engine says")


def take_pictures(page: Page, title: str) -> None:
    """Wide and as on a phone, light and dark; nothing may be wider than the screen."""
    PICTURES.mkdir(parents=True, exist_ok=True)
    for size, viewport in SIZES.items():
        page.set_viewport_size(viewport)
        for look in LOOKS:
            page.emulate_media(color_scheme=look)
            page.wait_for_timeout(400)
            page.screenshot(path=PICTURES / f"{title}-{size}-{look}.png", full_page=True)
        assert page.evaluate("document.documentElement.scrollWidth") <= viewport["width"]
