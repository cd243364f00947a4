"""The console in a real browser, before a real gateway with two simulated engines."""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable, Iterator
from urllib.parse import urlsplit

import httpx
import pytest
from playwright.sync_api import (
    Browser,
    Page,
    expect,
    sync_playwright,
)

from tests.console.site import ARMS, MODEL, Site, running
from tests.console.visitor import (
    SIZES,
    Visitor,
    count,
    fact,
    figure,
    server,
    sign_in,
    take_pictures,
)

CHROMIUM = shutil.which("chromium")
PAGES = {"overview": "/", "playground": "/playground", "keys": "/keys", "connect": "/connect"}
pytestmark = [
    pytest.mark.service,
    pytest.mark.timeout(180),  # a busy machine makes a browser slow, not wrong
    pytest.mark.skipif(CHROMIUM is None, reason="chromium is not installed"),
]


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    with running(tmp_path_factory.mktemp("console")) as found:
        yield found


@pytest.fixture(scope="module")
def browser(site: Site) -> Iterator[Browser]:
    with sync_playwright() as playwright:
        expect.set_options(timeout=30_000)
        found = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield found
        found.close()


Visit = Callable[[str], Visitor]


@pytest.fixture(scope="module")
def visit(browser: Browser, site: Site) -> Iterator[Visit]:
    """Makes visitors, signed in unless the key is empty; in the end nothing may have gone wrong,
    and nobody but the console may have been asked for anything."""
    made: list[Visitor] = []

    def make(key: str) -> Visitor:
        context = browser.new_context(base_url=site.console, viewport=SIZES["wide"])
        context.set_default_timeout(30_000)
        visitor = Visitor(context, [], [])
        context.on("request", lambda request: visitor.asked.append(request.url))
        made.append(visitor)
        if key:
            page = visitor.page("/login")
            sign_in(page, key)
            page.close()
        return visitor

    yield make
    asked = {url for visitor in made for url in visitor.asked}
    for visitor in made:
        visitor.context.close()
    assert {urlsplit(url).netloc for url in asked} == {urlsplit(site.console).netloc}
    secrets = (site.key, site.admin_key, site.read_key)
    assert not [url for url in asked for secret in secrets if secret in url]
    assert [one for visitor in made for one in visitor.wrong] == []


@pytest.fixture(scope="module")
def ada(visit: Visit, site: Site) -> Visitor:
    """Signed in with the admin key."""
    return visit(site.admin_key)


def test_signing_in_and_out(visit: Visit, site: Site) -> None:
    page = visit("").page()
    assert urlsplit(page.url).path == "/login"
    sign_in(page, site.admin_key)
    (cookie,) = page.context.cookies()
    assert (cookie["httpOnly"], cookie["sameSite"]) == (True, "Strict")
    other = page.context.new_page()
    other.goto("/keys")
    expect(other.get_by_role("heading", name="Keys")).to_be_visible()
    page.get_by_role("button", name="Sign out").click()
    expect(page.get_by_label("Admin key")).to_be_visible()
    # The other page was left open: it must not stay.
    expect(other.get_by_label("Admin key")).to_be_visible()
    assert page.context.cookies() == []


def test_the_charts_move(ada: Visitor, site: Site) -> None:
    page = ada.page()
    for chart in (".lines", ".heat"):
        drawn = page.locator(f"{chart} svg").first
        expect(drawn).to_be_visible()
        before = drawn.inner_html()
        expect(drawn).not_to_have_js_property("innerHTML", before)
    for arm in ARMS:
        for name in ("P50", "P90", "P99"):
            expect(figure(page, arm, name)).to_have_text(re.compile(r"^[\d.]+ m?s$"))
        expect(fact(page, arm, "Errors")).to_have_text("0")
    requests = count(page, "chunk-512")
    expect(fact(page, "chunk-512", "Requests")).not_to_have_text(str(requests))
    assert count(page, "chunk-512") > requests


def test_shifting_asks_and_traffic_follows(ada: Visitor, site: Site) -> None:
    page = ada.page()
    slider = page.get_by_role("slider", name="Share of chunk-64 in percent")
    slider.locator(".q-slider__track-container").focus()
    for left in (40, 30, 20, 10, 0):
        page.keyboard.press("PageDown")
        expect(page.get_by_text(f"50 % → {left} %")).to_be_visible()
    page.get_by_role("button", name="Shift …").click()
    dialog = page.get_by_role("dialog")
    expect(dialog).to_contain_text("chunk-512: 50 % → 100 %")
    assert site.admin(f"models/{MODEL}")["arms"][1]["weight"] == 50
    dialog.get_by_label("Why").fill("chunk-64 is late")
    dialog.get_by_role("button", name="Shift", exact=True).click()
    expect(page.get_by_text("chunk-64 is late")).to_be_visible()
    expect(page.locator(".history li").first).to_contain_text("Ada (console)")
    latest = site.admin("history")[0]
    assert (latest["by"], latest["reason"]) == ("Ada (console)", "chunk-64 is late")
    expect(fact(page, "chunk-64", "Share of the split")).to_have_text("0 %")
    before, after = after_the_shift(page)
    assert after["chunk-64"] == before["chunk-64"], "chunk-64 still gets traffic"
    assert after["chunk-512"] > before["chunk-512"] + 10


def after_the_shift(page: Page) -> tuple[dict[str, int], dict[str, int]]:
    """Requests by arm at two moments, once what was under way has been counted: on a busy machine
    that takes its time."""
    for _ in range(6):
        before = {arm: count(page, arm) for arm in ARMS}
        page.wait_for_timeout(4500)
        after = {arm: count(page, arm) for arm in ARMS}
        if after["chunk-64"] == before["chunk-64"]:
            break
    return before, after


def test_a_shift_that_comes_too_late_is_refused(ada: Visitor, site: Site) -> None:
    page = ada.page()
    slider = page.get_by_role("slider", name="Share of chunk-64 in percent")
    slider.locator(".q-slider__track-container").focus()
    page.keyboard.press("ArrowRight")
    page.get_by_role("button", name="Shift …").click()
    model = site.admin(f"models/{MODEL}")
    body = {"weights": dict.fromkeys(ARMS, 50), "revision": model["revision"]}
    headers = {"authorization": f"Bearer {site.admin_key}"}
    url = f"{site.url}/admin/v1/models/{MODEL}/weights"
    assert httpx.put(url, json=body, headers=headers, trust_env=False).is_success
    page.get_by_role("dialog").get_by_role("button", name="Shift", exact=True).click()
    expect(page.get_by_text(re.compile("revision", re.I)).first).to_be_visible()
    expect(fact(page, "chunk-64", "Share of the split")).to_have_text("50 %")
    assert [arm["weight"] for arm in site.admin(f"models/{MODEL}")["arms"]] == [50, 50]


def test_a_server_is_taken_out_and_put_back(ada: Visitor, site: Site) -> None:
    page = ada.page()
    card = server(page, "chunk-64")
    expect(card).to_contain_text("max_num_batched_tokens 64")
    expect(card).to_contain_text("chat, completions")
    expect(card.locator(".badge")).to_have_text("up")
    card.get_by_role("button", name="Take out").click()
    page.get_by_role("dialog").get_by_role("button", name="Take out").click()
    expect(card.locator(".badge")).to_have_text("taken out")
    assert [one["enabled"] for one in site.admin("backends")] == [True, False]
    card.get_by_role("button", name="Put back").click()
    expect(card.locator(".badge")).to_have_text("up")
    assert [one["enabled"] for one in site.admin("backends")] == [True, True]


@pytest.mark.parametrize("api", ["chat", "messages", "responses"])
def test_the_playground_asks_both_arms(ada: Visitor, site: Site, api: str) -> None:
    page = ada.page("/playground")
    page.get_by_role("combobox", name="API").click()
    page.get_by_role("option", name=api).click()
    page.get_by_label("Filler before it, tokens").fill("4000")
    page.get_by_label("Longest answer, tokens").fill("32")
    page.get_by_label("Repeat").fill("2")
    page.get_by_role("button", name="Run").click()
    expect(page.get_by_text("Done: 2 of 2")).to_be_visible()
    for arm in ARMS:
        for name in ("TTFT", "Inter-token", "Total"):
            expect(figure(page, arm, name)).to_have_text(re.compile(r"^[\d.]+ m?s$"))
        expect(page.get_by_role("region", name=f"Answer of {arm}")).to_contain_text("simulated")
        expect(fact(page, arm, "Medians")).to_contain_text("over 2")
        expect(fact(page, arm, "Tokens")).to_contain_text("(0 cached), 32 out")
    expect(page.locator(".chart path[stroke='#e0701a']").first).to_be_visible()


def test_who_may_only_read_sees_all_and_changes_nothing(visit: Visit, site: Site) -> None:
    page = visit(site.read_key).page()
    expect(page.get_by_text("read only")).to_be_visible()
    expect(page.get_by_role("button", name="Shift …")).to_be_disabled()
    expect(server(page, "chunk-64").get_by_role("button", name="Take out")).to_be_disabled()
    slider = page.get_by_role("slider", name="Share of chunk-64 in percent")
    expect(slider).to_have_attribute("aria-disabled", "true")
    page.goto("/playground")
    expect(page.get_by_label("Gateway key")).to_be_visible()
    page.get_by_role("button", name="Run").click()
    expect(page.get_by_text("Give one of the keys")).to_be_visible()


def test_keys_are_named_with_their_use_and_never_shown(ada: Visitor, site: Site) -> None:
    page = ada.page("/keys")
    dev = page.locator(".card").filter(has=page.get_by_role("heading", name="dev"))
    expect(dev).to_contain_text(re.compile(r"Requests this minute\s*\d+ of 6,000"))
    expect(dev).to_contain_text(re.compile(r"Prompt tokens\s*[\d,]+ \([\d.]+ % cached\)"))
    expect(dev).to_contain_text(re.compile(r"Generated tokens\s*[1-9]"))
    expect(dev).to_contain_text(re.compile(r"Turned away\s*0"))
    assert site.key not in page.content()


def test_connect_says_what_a_client_needs(ada: Visitor, site: Site) -> None:
    page = ada.page("/connect")
    page.get_by_role("combobox", name="Client").click()
    page.get_by_role("option", name="Codex").click()
    expect(page.get_by_role("heading", name="Codex", exact=True)).to_be_visible()
    expect(page.locator("pre").filter(has_text=f"{site.url}/v1").first).to_be_visible()
    page.get_by_label("address").fill("https://gateway.example/v1/")
    expect(page.locator("pre").filter(has_text="https://gateway.example/v1").first).to_be_visible()
    assert site.key not in page.content()


def test_the_keyboard_reaches_everything(ada: Visitor, site: Site) -> None:
    page = ada.page()
    expect(page.get_by_role("button", name="15 min")).to_be_visible()
    names = []
    for _ in range(16):
        page.keyboard.press("Tab")
        names.append(page.evaluate("document.activeElement.innerText.trim()"))
    assert names[:5] == ["Skip to content", "Overview", "Playground", "Keys", "Connect"]
    assert {"Sign out", "15 min"} <= set(names), names


@pytest.mark.parametrize("title", PAGES)
def test_pictures(ada: Visitor, title: str) -> None:
    page = ada.page(PAGES[title])
    expect(page.locator(".page .card").first).to_be_visible()
    if title == "playground":
        page.get_by_role("button", name="Run").click()
        expect(page.get_by_text("Done: 1 of 1")).to_be_visible()
    take_pictures(page, title)


def test_pictures_of_the_way_in(visit: Visit) -> None:
    take_pictures(visit("").page("/login"), "sign-in")


def test_no_key_was_logged(site: Site) -> None:
    said = site.said()
    assert not [key for key in (site.key, site.admin_key, site.read_key) if key in said]
    assert "Traceback" not in said
