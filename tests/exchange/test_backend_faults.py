"""Whatever a backend does, the client gets a clean error in its API's own shape, and soon."""

from __future__ import annotations

import asyncio
import socket

import pytest

from gateway.records import NoToken, Outcome
from tests.support.apis import CHAT, MESSAGES, Dialect
from tests.support.ports import rude
from tests.support.scripted import Received, chunk, reply
from tests.support.site import Script, Site, answers, both, every_api, hangs_up, refuses, says

pytestmark = pytest.mark.asyncio(loop_scope="module")


HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n"


async def endless_head(request: Received, writer: asyncio.StreamWriter) -> None:
    writer.write(HEAD)
    while True:
        writer.write(b"x-filler: " + b"a" * 4086 + b"\r\n")
        await writer.drain()


async def endless_trailer(request: Received, writer: asyncio.StreamWriter) -> None:
    writer.write(HEAD + b"transfer-encoding: chunked\r\n\r\n" + chunk(b"{}") + b"0\r\n")
    while True:
        writer.write(b"x-filler: " + b"a" * 4086 + b"\r\n")
        await writer.drain()


async def endless_interim(request: Received, writer: asyncio.StreamWriter) -> None:
    while True:
        writer.write(b"HTTP/1.1 100 Continue\r\n\r\n" * 50)
        await writer.drain()


# What the access log says of each, beside the backend's name.
UNREADABLE: dict[str, tuple[Script, str]] = {
    "no byte": (hangs_up, "connection lost"),
    "not HTTP": (says(b"SSH-2.0-OpenSSH_9.2\r\n\r\n"), "malformed reply"),
    "cut head": (says(HEAD, close=True), "connection lost"),
    "cut body": (says(HEAD + b"content-length: 99\r\n\r\n{", close=True), "connection lost"),
    "longer than it says": (
        says(HEAD + b'content-length: 2\r\n\r\n{"id":"x"}', close=True),
        "malformed reply",
    ),
    "bad chunk": (
        says(HEAD + b"transfer-encoding: chunked\r\n\r\nzz\r\n{}\r\n0\r\n\r\n"),
        "malformed reply",
    ),
    "two lengths": (
        says(HEAD + b"content-length: 2\r\ncontent-length: 3\r\n\r\n{}"),
        "malformed reply",
    ),
    "oversized head": (says(HEAD + b"x: " + b"a" * 400_000 + b"\r\n\r\n"), "reply head longer"),
    "endless head": (endless_head, "reply head longer"),
    "endless interim replies": (endless_interim, "reply head longer"),
    "endless trailer": (endless_trailer, "longer"),
    "HTML": (
        says(reply(b"<html>It works!</html>", headers="content-type: text/html\r\n")),
        "not JSON",
    ),
    "plain text": (says(reply(b"ok", headers="content-type: text/plain\r\n")), "not JSON"),
    "cut JSON": (says(reply(b'{"id":"c1","usage":{')), "not JSON"),
    "nothing": (says(reply(b"")), "not JSON"),
    "redirect": (
        says(reply(b"", status="302 Found", headers="location: http://10.0.0.9/\r\n")),
        "HTTP 302",
    ),
}


@both
@pytest.mark.parametrize("fault", UNREADABLE)
async def test_what_cannot_be_read(at: Site, fault: str, stream: bool) -> None:
    script, detail = UNREADABLE[fault]
    if stream and detail == "not JSON":
        detail = "not an event stream"
    at.play(script)
    async with asyncio.timeout(2):
        response = await at.ask(CHAT, stream=stream)
    error = response.json()["error"]
    assert (response.status_code, error["type"]) == (502, "backend_error")
    assert "The model's server" in error["message"] and "again" in error["message"]
    record = await at.record()
    assert (record.status, record.outcome) == (502, Outcome.BACKEND_ERROR)
    assert record.no_token is (NoToken.BACKEND_ERROR if stream else None)
    assert at.backend().outstanding == 0
    line = await at.line(record)
    assert line["backend"] == "b0"
    assert line["detail"].startswith("b0: ") and detail in line["detail"]
    for secret in ("b0", "127.0.0.1", "10.0.0.9", str(at.backends[0].port)):
        assert secret not in response.text
    assert response.headers.get("x-gateway-backend") == "b0", "the key may know, by this header"


@every_api
@both
async def test_the_error_has_the_shape_of_the_api(at: Site, dialect: Dialect, stream: bool) -> None:
    at.play(hangs_up)
    response = await at.ask(dialect, stream=stream)
    body = response.json()
    assert response.status_code == 502
    assert response.headers["content-type"] == "application/json"
    if dialect is MESSAGES:
        assert body["type"] == "error"
        assert body["error"].keys() == {"type", "message"}
        assert body["error"]["type"] == "api_error"
        assert body["request_id"] == response.headers["x-request-id"]
    else:
        assert body["error"].keys() == {"message", "type", "param", "code"}
        assert body["error"]["code"] == "backend_error"


async def test_a_key_that_may_not_know_its_arm_learns_nothing(at: Site) -> None:
    at.play(hangs_up)
    at.configure(keys=[at.base["keys"][0] | {"expose_arm": False}])
    response = await at.ask(CHAT)
    assert response.status_code == 502
    assert not [name for name in response.headers if name.startswith("x-gateway")]
    assert "b0" not in response.text


@every_api
async def test_nothing_listens(at: Site, dialect: Dialect) -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{unused.getsockname()[1]}"
    at.configure(backends={"b0": {"url": url}})
    response = await at.ask(dialect)
    assert response.status_code == 502
    assert "cannot be reached right now; try again" in response.text
    record = await at.record()
    assert record.outcome is Outcome.BACKEND_ERROR
    line = await at.line(record)
    assert line["detail"].startswith("b0: cannot connect: ")
    assert "127.0.0.1" not in response.text


@both
@pytest.mark.parametrize("reset", [False, True], ids=["closed", "reset"])
async def test_connections_are_accepted_and_closed_at_once(
    at: Site, reset: bool, stream: bool
) -> None:
    """The connection may be gone before the request is on it."""
    async with rude(reset=reset) as url:
        at.configure(backends={"b0": {"url": url}})
        for number in range(1, 6):
            response = await at.ask(CHAT, stream=stream)
            assert response.status_code == 502, response.text
            record = await at.record(number)
            assert record.outcome is Outcome.BACKEND_ERROR
            assert "connection lost" in record.detail
    assert not at.backend().circuit.closed


@every_api
async def test_every_backend_is_out_of_service(at: Site, dialect: Dialect) -> None:
    at.backend().enabled = False
    try:
        response = await at.ask(dialect)
    finally:
        at.backend().enabled = True
    assert response.status_code == 503
    assert "No server of this model is available right now" in response.text
    assert int(response.headers["retry-after"]) >= 1
    record = await at.record()
    assert record.outcome is Outcome.BACKEND_ERROR


@pytest.mark.parametrize(
    ("status", "seen", "says_"),
    [
        ("400 Bad Request", 400, "temperature must be below 2"),
        ("422 Unprocessable Entity", 400, "temperature must be below 2"),
        ("413 Content Too Large", 413, "temperature must be below 2"),
        ("401 Unauthorized", 502, "tell the operator"),
        ("402 Payment Required", 502, "tell the operator"),
        ("403 Forbidden", 502, "tell the operator"),
        ("429 Too Many Requests", 503, "at its limit"),
        ("500 Internal Server Error", 502, "failed to answer"),
        ("503 Service Unavailable", 503, "at its limit"),
        ("504 Gateway Timeout", 504, "too long"),
    ],
)
@both
async def test_what_a_backend_refuses(
    at: Site, status: str, seen: int, says_: str, stream: bool
) -> None:
    at.play(refuses(status, "temperature must be below 2"))
    response = await at.ask(CHAT, stream=stream)
    assert response.status_code == seen
    assert says_ in response.json()["error"]["message"]
    assert (await at.record()).outcome is not Outcome.OK
    assert (await at.line(at.records[0]))["detail"]


@pytest.mark.parametrize(
    ("said", "told"),
    [
        ("7", "7"),
        ("3600", "3600"),
        ("Mon, 30 Nov 2026 00:00:00 GMT", "1"),
        ("-5", "1"),
        ("9" * 400, "1"),
    ],
)
@every_api
async def test_a_backend_says_how_long_to_wait(
    at: Site, dialect: Dialect, said: str, told: str
) -> None:
    at.play(says(reply(b"", status="429 Too Many Requests", headers=f"retry-after: {said}\r\n")))
    response = await at.ask(dialect)
    assert (response.status_code, response.headers["retry-after"]) == (503, told)


@pytest.mark.parametrize("waits", [("60", "2"), ("2", "60")])
async def test_of_two_full_backends_the_shorter_wait_is_told(
    at: Site, waits: tuple[str, str]
) -> None:
    status = "429 Too Many Requests"
    at.play(*(says(reply(b"", status=status, headers=f"retry-after: {n}\r\n")) for n in waits))
    at.configure(models=at.arms(["b0"], ["b1"]))
    response = await at.ask(CHAT)
    assert (response.status_code, response.headers["retry-after"]) == (503, "2")
    assert "again in 2 s" in response.text


@every_api
async def test_a_good_answer_after_bad_ones(at: Site, dialect: Dialect) -> None:
    """Nothing of a fault stays behind: neither in the pool nor in the counts."""
    for script, _ in list(UNREADABLE.values())[:4]:
        at.play(script)
        await at.ask(dialect)
    at.play(answers(dialect))
    for _ in range(3):
        response = await at.ask(dialect)
        assert response.content == b"".join(dialect.frames)
    assert at.backend().outstanding == 0
