"""Which APIs a backend offers: as it lists them, or as it answers an empty request."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping

import httpx
import pytest

from gateway.engines.engines import Engines
from gateway.engines.facts import LONGEST_LISTING
from gateway.engines.offered import ROUTES, judged
from gateway.records import Api
from gateway.settings import BackendSettings
from tests.engines.fakes import FakeBackend, nothing_of

ALL = frozenset(ROUTES)
Answers = Mapping[str, httpx.Response | Callable[[], Awaitable[httpx.Response]]]


class Server:
    """Answers by path what it was told to, 404 otherwise, and notes what it was asked."""

    def __init__(self, answers: Answers) -> None:
        self.answers = answers
        self.seen: list[httpx.Request] = []

    async def __call__(self, request: httpx.Request) -> httpx.Response:
        self.seen.append(request)
        answer = self.answers.get(request.url.path.removeprefix("/p"))
        if answer is None:
            return httpx.Response(404, json={"detail": "Not Found"})
        return answer if isinstance(answer, httpx.Response) else await answer()

    @property
    def asked(self) -> list[str]:
        """What was asked to find its APIs out."""
        asked = [f"{one.method} {one.url.path.removeprefix('/p')}" for one in self.seen[2:]]
        return [one for one in asked if one not in ("GET /metrics", "GET /server_info")]


async def found(server: Server, timeout: float = 5.0, apis: object = "auto") -> FakeBackend:
    """A backend once it has been asked."""
    settings = BackendSettings.model_validate({"url": "http://h:1/p", "apis": apis})
    backend = FakeBackend(settings=settings)
    client = httpx.AsyncClient(transport=httpx.MockTransport(server))
    asking = Engines(str, lambda _: [backend], nothing_of, lambda _: client, timeout)
    async with client, asking as engines:
        engines.healthy(backend)
        await asyncio.gather(*engines._open.values())
    return backend


def listing(*paths: str, size: int = 0) -> httpx.Response:
    paths_of = {path: {"post": {"summary": "x" * size}} for path in paths}
    return httpx.Response(200, json={"openapi": "3.1.0", "paths": paths_of})


def refusing(*apis: Api, status: int = 400) -> dict[str, httpx.Response]:
    return {ROUTES[api]: httpx.Response(status, json={"error": "empty"}) for api in apis}


async def test_a_listing_tells_all() -> None:
    server = Server({"/openapi.json": listing("/health", "/v1/messages", ROUTES[Api.CHAT])})
    assert (await found(server)).apis == frozenset({"chat", "messages"})
    assert server.asked == ["GET /openapi.json"]


@pytest.mark.parametrize(
    "told",
    [
        httpx.Response(404),
        httpx.Response(500),
        httpx.Response(200, text="<html>"),
        httpx.Response(200, json={"paths": []}),
        listing("/health"),
        listing(ROUTES[Api.RESPONSES], size=LONGEST_LISTING),
    ],
)
async def test_without_a_listing_empty_requests_tell(told: httpx.Response) -> None:
    server = Server({"/openapi.json": told, **refusing(Api.CHAT, Api.COMPLETIONS)})
    assert (await found(server)).apis == frozenset({"chat", "completions"})
    assert server.asked == ["GET /openapi.json", *(f"POST {path}" for path in ROUTES.values())]
    posted = [one for one in server.seen if one.method == "POST"][-1]
    assert (posted.content, posted.headers["authorization"]) == (b"{}", "Bearer s3cret")


@pytest.mark.parametrize(
    ("statuses", "expected"),
    [
        ({Api.CHAT: 400, Api.MESSAGES: 404, Api.RESPONSES: 405}, {"chat"}),
        ({Api.CHAT: 422, Api.MESSAGES: 501, Api.RESPONSES: 415}, {"chat", "responses"}),
        ({Api.CHAT: 400, Api.MESSAGES: 500, Api.RESPONSES: 429}, {"chat", "messages", "responses"}),
        ({Api.CHAT: 401, Api.MESSAGES: 401}, None),
        ({Api.CHAT: 404, Api.MESSAGES: 404}, None),
        ({Api.CHAT: 200, Api.MESSAGES: 404}, None),
    ],
)
def test_what_the_answers_to_empty_requests_mean(
    statuses: dict[Api, int], expected: set[str] | None
) -> None:
    assert judged(statuses) == expected


async def test_a_server_that_does_not_answer_this_keeps_its_other_facts() -> None:
    async def hang() -> httpx.Response:
        await asyncio.Event().wait()
        raise AssertionError

    version = httpx.Response(200, json={"version": "0.32.0"})
    backend = await found(Server({"/version": version, "/openapi.json": hang}), timeout=0.05)
    assert backend.facts is not None
    assert (backend.facts.version, backend.apis) == ("0.32.0", None)


async def test_what_the_settings_say_is_not_asked() -> None:
    server = Server({"/openapi.json": listing(*ROUTES.values())})
    backend = await found(server, apis=["chat"])
    assert server.asked == []
    assert backend.facts is not None and backend.facts.apis is None


async def test_backends_that_differ_are_told_once(caplog: pytest.LogCaptureFixture) -> None:
    backends = [FakeBackend(name="a"), FakeBackend(name="b", url="http://h:2")]

    async def answer(request: httpx.Request) -> httpx.Response:
        paths = ROUTES.values() if request.url.port == 1 else [ROUTES[Api.CHAT]]
        return listing(*paths)

    client = httpx.AsyncClient(transport=httpx.MockTransport(answer))
    asking = Engines(str, lambda _: backends, nothing_of, lambda _: client)
    async with client, asking as engines:
        for _ in range(2):
            for backend in backends:
                backend.probe_failures = 1
                engines.healthy(backend)
            await asyncio.gather(*engines._open.values())
    told = [one.message for one in caplog.records if "same APIs" in one.message]
    assert told == [
        "the backends of model m do not offer the same APIs (a: chat, completions, embeddings, "
        "messages, responses; b: chat): requests for an API that one lacks go to the others, or "
        "are translated for it"
    ]


async def test_backends_that_are_alike_are_not_worth_a_word(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.WARNING)
    assert (await found(Server({"/openapi.json": listing(*ROUTES.values())}))).apis == ALL
    assert not [one for one in caplog.records if "same APIs" in one.message]
