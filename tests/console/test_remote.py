from __future__ import annotations

import json

import httpx
import pytest

from gateway.console.remote import Remote
from gateway.console.sessions import Role, Session
from gateway.errors import Forbidden, GatewayError


def session(role: Role = Role.ADMIN, name: str = "Ada") -> Session:
    return Session("sk-1", role, name, 0.0)


class FakeGateway:
    """Answers everything alike and keeps what it was asked."""

    def __init__(self, reply: httpx.Response) -> None:
        self._reply = reply
        self.requests: list[httpx.Request] = []
        client = httpx.AsyncClient(
            base_url="http://gateway", transport=httpx.MockTransport(self._answer)
        )
        self.remote = Remote(client, "sk-metrics")

    def _answer(self, request: httpx.Request) -> httpx.Response:
        self.requests.append(request)
        return self._reply


BACKEND = {
    "name": "b/1", "model": "m", "arm": "a", "url": "http://b", "usable": True, "enabled": True,
    "up": True, "checked": True, "circuit": "closed", "outstanding": 0, "max_concurrency": 1,
    "engine": None, "engine_version": None, "max_model_len": None, "apis": None,
    "running": None, "differences": [], "ttft_parts": None,
}  # fmt: skip


async def test_a_change_goes_with_the_key_and_name_of_who_asks() -> None:
    fake = FakeGateway(httpx.Response(200, json=BACKEND))
    await fake.remote.set_enabled(session(), "b/1", False)
    (request,) = fake.requests
    assert request.url.raw_path == b"/admin/v1/backends/b%2F1"
    assert json.loads(request.content) == {"enabled": False}
    assert request.headers["authorization"] == "Bearer sk-1"
    assert request.headers["x-gateway-actor"] == "Ada (console)"


async def test_who_may_only_read_changes_nothing_whatever_the_page_sends() -> None:
    fake = FakeGateway(httpx.Response(200, json=BACKEND))
    with pytest.raises(Forbidden, match="may only read"):
        await fake.remote.set_enabled(session(Role.READ), "b/1", False)
    assert fake.requests == []


async def test_metrics_are_asked_for_with_their_own_key() -> None:
    fake = FakeGateway(httpx.Response(200, text="x 1\n"))
    assert await fake.remote.metrics() == "x 1\n"
    assert fake.requests[0].headers["authorization"] == "Bearer sk-metrics"


@pytest.mark.parametrize(
    ("reply", "sentence"),
    [
        (httpx.Response(409, json={"error": {"message": "Stale."}}), "Stale."),
        (httpx.Response(200, text="<html>"), "no TTFT Gateway"),
        (httpx.Response(502, text="Bad gateway"), r"no TTFT Gateway \(HTTP 502\)"),
        (httpx.Response(500, json=["error"]), "no TTFT Gateway"),
    ],
)
async def test_a_refusal_is_a_sentence(reply: httpx.Response, sentence: str) -> None:
    with pytest.raises(GatewayError, match=sentence):
        await FakeGateway(reply).remote.models(session())


async def test_a_key_is_not_taken_for_admins_because_something_else_fails() -> None:
    fake = FakeGateway(httpx.Response(404, json={"error": {"message": "Elsewhere."}}))
    with pytest.raises(GatewayError, match="Elsewhere"):
        await fake.remote.role("sk-1")
    off = httpx.Response(403, json={"error": {"message": "Off.", "code": "admin_off"}})
    with pytest.raises(Forbidden, match="Off"):
        await FakeGateway(off).remote.role("sk-1")
