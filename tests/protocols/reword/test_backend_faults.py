"""What a client is told when the backend is at fault: what to do, and nothing of the backend."""

from __future__ import annotations

import json

import pytest

from gateway.errors import (
    BackendFailed,
    BackendLimited,
    BackendMisconfigured,
    BackendOverloaded,
    BackendTimeout,
    NotFound,
)
from gateway.protocols.faults import reworded
from gateway.records import Api
from tests.protocols.reword.replies import Case, expect, openai_error

TABLE: list[Case] = [
    (
        "the gateway's key for the backend is wrong: not the client's doing",
        401,
        b'{"error":"Unauthorized"}',
        BackendMisconfigured,
        "tell the operator",
        None,
        "backend_misconfigured",
        True,
    ),
    (
        "forbidden likewise",
        403,
        b"",
        BackendMisconfigured,
        "own access",
        None,
        "backend_misconfigured",
        True,
    ),
    (
        "the gateway's account is not paid for",
        402,
        openai_error("Top up node-7's account", "x", 402),
        BackendMisconfigured,
        "own quota at the model's server is used up; tell the operator",
        None,
        "backend_misconfigured",
        True,
    ),
    (
        "likewise, in OpenAI's words",
        429,
        openai_error("You exceeded your quota", "insufficient_quota", "insufficient_quota"),
        BackendMisconfigured,
        "own quota",
        None,
        "backend_misconfigured",
        True,
    ),
    (
        "the backend does not serve the model it is configured for",
        404,
        openai_error("The model `/srv/llama` does not exist.", "NotFoundError", 404),
        BackendMisconfigured,
        "does not know the model",
        None,
        "backend_misconfigured",
        True,
    ),
    (
        "likewise, in other servers' words",
        404,
        openai_error('model "llama" not found, try pulling it first', "api_error", None),
        BackendMisconfigured,
        "does not know the model",
        None,
        "backend_misconfigured",
        True,
    ),
    (
        "a route that the engine lacks",
        404,
        b'{"detail":"Not Found"}',
        NotFound,
        "does not offer this API; use another one, like /v1/chat/completions",
        None,
        "unsupported_api",
        True,
    ),
    (
        "a route it lacks, told by a proxy",
        404,
        b"<html>404</html>",
        NotFound,
        "does not offer this API",
        None,
        "unsupported_api",
        True,
    ),
    (
        "a method it lacks",
        405,
        b'{"detail":"Method Not Allowed"}',
        NotFound,
        "does not offer this API",
        None,
        "unsupported_api",
        True,
    ),
    (
        "a full queue",
        503,
        openai_error("busy", "x", 503),
        BackendOverloaded,
        "limit",
        None,
        "overloaded",
        True,
    ),
    ("too many requests", 429, b"", BackendOverloaded, "limit", None, "overloaded", True),
    (
        "overloaded, in Anthropic's number",
        529,
        b"",
        BackendOverloaded,
        "limit",
        None,
        "overloaded",
        True,
    ),
    ("a crash", 500, b"Internal Server Error", BackendFailed, "again", None, "backend_error", True),
    (
        "a proxy without a backend",
        502,
        b"<html>",
        BackendFailed,
        "again",
        None,
        "backend_error",
        True,
    ),
    ("a proxy that gave up", 504, b"<html>", BackendTimeout, "too long", None, "timeout", True),
    ("a redirect", 307, b"", BackendFailed, "again", None, "backend_error", True),
    ("client closed request", 499, b"", BackendFailed, "again", None, "backend_error", True),
]


@pytest.mark.parametrize("case", TABLE, ids=lambda case: case[0])
def test_replies(case: Case) -> None:
    expect(case)


def test_what_a_server_says_of_itself_stays_with_the_operator() -> None:
    for status in (301, 401, 403, 429, 500, 502, 503, 504):
        body = openai_error("EngineDeadError in /opt/vllm on node-7", "x", status)
        error = reworded(Api.CHAT, status, body).error
        assert "node-7" not in error.message
        assert error.detail is not None and "node-7" in error.detail


@pytest.mark.parametrize("status", [429, 503, 529])
def test_a_server_at_its_limit_says_how_long_to_wait(status: int) -> None:
    error = reworded(Api.CHAT, status, b"", retry_after=90.0).error
    assert type(error) is BackendLimited
    assert error.retry_after == 90.0 and error.message.endswith("again in 90 s.")
    for said in (None, 0.0):
        error = reworded(Api.CHAT, status, b"", retry_after=said).error
        assert type(error) is BackendOverloaded
        assert error.retry_after == 1 and error.message.endswith("again in a moment.")


@pytest.mark.parametrize(
    ("said", "wait", "told"),
    [
        ("Rate limit reached. Please try again in 1.5s. Visit node-7.", 1.5, "again in 2 s."),
        ("Try again in 250ms", 0.25, "again in 1 s."),
        ("try again in 20 seconds", 20.0, "again in 20 s."),
        ("try again in 0s", 1, "again in a moment."),
        ("try again in 6m0s", 1, "again in a moment."),
        ("try again later", 1, "again in a moment."),
    ],
)
def test_the_wait_may_stand_in_the_message(said: str, wait: float, told: str) -> None:
    error = {"code": "rate_limit_exceeded", "message": said}
    event = {"type": "response.failed", "response": {"error": error}}
    within = reworded(Api.RESPONSES, 200, json.dumps(event).encode()).error
    whole = reworded(Api.CHAT, 429, openai_error(said, "requests", "rate_limit_exceeded")).error
    for one in (within, whole):
        assert one.retry_after == wait and one.message.endswith(told), one.message
    header = reworded(Api.CHAT, 429, openai_error(said, "x", 429), retry_after=3.0).error
    assert header.retry_after == 3.0


def test_the_other_api_is_offered_when_chat_is_the_one_that_lacks() -> None:
    assert "/v1/completions" in reworded(Api.CHAT, 404, b"").error.message
