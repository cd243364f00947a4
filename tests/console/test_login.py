"""Signing in and out, and what the guard lets through, on a console without its pages."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator
from dataclasses import dataclass, field

import httpx
import pytest
from fastapi import FastAPI, Request

from gateway.console import login
from gateway.console.guard import Guard
from gateway.console.login import add_login
from gateway.console.remote import Remote
from gateway.console.sessions import FREE_TRIES, Sessions, Throttle

ORIGIN = "http://console"
ADMIN, READ = "sk-admin", "sk-read"
HTML = {"accept": "text/html"}


@dataclass
class FakeGateway:
    """Knows two admin keys, or fails."""

    fails: bool = False
    asked: list[str] = field(default_factory=list)

    def __call__(self, request: httpx.Request) -> httpx.Response:
        if self.fails:
            raise httpx.ConnectError("nobody there", request=request)
        sent = request.headers["authorization"].removeprefix("Bearer ")
        self.asked.append(sent)
        if sent == ADMIN:
            error = {"message": "enabled: field required", "param": "enabled", "code": None}
            return httpx.Response(400, json={"error": error})
        if sent == READ:
            return httpx.Response(403, json={"error": {"message": "no", "code": "read_only_key"}})
        return httpx.Response(401, json={"error": {"message": "This is not an admin key."}})


@pytest.fixture
def gateway() -> FakeGateway:
    return FakeGateway()


@pytest.fixture
async def browser(
    gateway: FakeGateway, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[httpx.AsyncClient]:
    monkeypatch.setattr(login, "PAUSE", 0.0)
    transport = httpx.MockTransport(gateway)
    async with httpx.AsyncClient(transport=transport, base_url="http://gateway") as behind:
        sessions = Sessions(lambda: 0.0)
        app = FastAPI()
        add_login(app, Remote(behind), sessions, Throttle(lambda: 0.0))

        @app.get("/")
        async def page(request: Request) -> str:
            session = request.state.session
            return f"{session.role} {session.name}"

        front = httpx.ASGITransport(Guard(app, sessions), client=("127.0.0.9", 1))
        async with httpx.AsyncClient(
            transport=front, base_url=ORIGIN, headers={"origin": ORIGIN}
        ) as client:
            yield client


async def sign_in(browser: httpx.AsyncClient, key: str, name: str = "") -> httpx.Response:
    return await browser.post("/login", data={"key": key, "name": name})


@pytest.mark.parametrize(("key", "role"), [(ADMIN, "admin"), (READ, "read")])
async def test_the_gateway_says_who_may_what(
    browser: httpx.AsyncClient, key: str, role: str
) -> None:
    reply = await sign_in(browser, f" {key}\n", "Ada")
    assert (reply.status_code, reply.headers["location"]) == (303, "/")
    assert (await browser.get("/")).json() == f"{role} Ada"


async def test_the_cookie_is_out_of_reach_of_scripts_and_other_sites(
    browser: httpx.AsyncClient,
) -> None:
    reply = await sign_in(browser, ADMIN)
    cookie = reply.headers["set-cookie"].lower()
    assert "httponly" in cookie and "samesite=strict" in cookie
    assert "secure" not in cookie
    assert ADMIN not in cookie
    over_tls = await browser.post("https://console/login", data={"key": ADMIN},
                                  headers={"origin": "https://console"})  # fmt: skip
    assert "secure" in over_tls.headers["set-cookie"].lower()


async def test_a_wrong_key_gets_nothing_and_is_not_repeated(
    browser: httpx.AsyncClient, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.DEBUG):
        reply = await sign_in(browser, "sk-wrong<b>")
    assert reply.status_code == 401
    assert "does not know this key" in reply.text
    assert "set-cookie" not in reply.headers
    assert "sk-wrong" not in reply.text + caplog.text
    assert "127.0.0.9" in caplog.text


async def test_trying_keys_is_slow(browser: httpx.AsyncClient, gateway: FakeGateway) -> None:
    for _ in range(FREE_TRIES):
        assert (await sign_in(browser, "sk-wrong")).status_code == 401
    reply = await sign_in(browser, ADMIN)
    assert (reply.status_code, reply.headers["retry-after"]) == (429, "1")
    assert ADMIN not in gateway.asked


@pytest.mark.parametrize("key", ["", "sk-ä", "sk\n1", "x" * 5000])
async def test_what_cannot_be_a_key_is_not_sent_on(
    browser: httpx.AsyncClient, gateway: FakeGateway, key: str
) -> None:
    assert (await sign_in(browser, key)).status_code == 401
    assert gateway.asked == []


async def test_a_gateway_that_is_away_is_said_to_be(
    browser: httpx.AsyncClient, gateway: FakeGateway
) -> None:
    gateway.fails = True
    reply = await sign_in(browser, ADMIN)
    assert reply.status_code == 502
    assert "No gateway answers at http://gateway" in reply.text


async def test_signing_out_ends_the_session_itself(browser: httpx.AsyncClient) -> None:
    await sign_in(browser, ADMIN)
    held = dict(browser.cookies)
    reply = await browser.post("/logout")
    assert reply.headers["location"] == "/login"
    assert not browser.cookies
    header = {"cookie": "; ".join(f"{name}={value}" for name, value in held.items())}
    assert (await browser.get("/", headers=header)).status_code == 401


async def test_signing_in_again_ends_the_session_before(browser: httpx.AsyncClient) -> None:
    await sign_in(browser, ADMIN)
    before = {"cookie": "; ".join(f"{n}={v}" for n, v in browser.cookies.items())}
    await sign_in(browser, READ)
    browser.cookies.clear()
    assert (await browser.get("/", headers=before)).status_code == 401
