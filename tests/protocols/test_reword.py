"""What a client is told of a backend's error."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.errors import (
    BackendFailed,
    BackendMisconfigured,
    BackendOverloaded,
    BackendTimeout,
    BadRequest,
    GatewayError,
    NotFound,
    TooLarge,
)
from gateway.protocols.faults import reworded
from gateway.records import Api, Outcome


def openai_error(message: str, kind: str, code: Any, param: str | None = None) -> bytes:
    error = {"message": message, "type": kind, "param": param, "code": code}
    return json.dumps({"error": error}).encode()


CONTEXT = (
    "This model's maximum context length is 8192 tokens. However, you requested 9000 tokens "
    "(8000 in the messages, 1000 in the completion)."
)
DUMP = (
    "1 validation error:\n  {'type': 'missing', 'loc': ('body', 'messages', 0, 'content'), "
    "'msg': 'Field required', 'input': {'role': 'user', 'secret': 'the whole prompt'}}"
)
DUMP_0_32 = (
    "2 validation errors:\n  {'type': 'string_type', 'loc': 'body.messages.0.content', 'msg': "
    "'Input should be a valid string', 'input': 'the whole prompt'}\n  {'type': 'list_type'}"
)
WHOLE_BODY_0_32 = (
    "1 validation error:\n  {'type': 'value_error', 'loc': 'body', 'msg': 'Value error, "
    "thinking.budget_tokens must be less than max_tokens', 'input': '<dict of 4 items>'}"
)

# (case, status, body, error, its message contains, param, code, retryable)
TABLE: list[tuple[str, int, bytes, type[GatewayError], str, str | None, str | None, bool]] = [
    (
        "a fault of the request, as vLLM words it",
        400,
        openai_error("temperature must be non-negative", "BadRequestError", 400, "temperature"),
        BadRequest,
        "temperature must be non-negative",
        "temperature",
        None,
        False,
    ),
    (
        "a code that is a word is kept",
        400,
        openai_error("No such tool", "invalid_request_error", "tool_unknown", "tools"),
        BadRequest,
        "No such tool",
        "tools",
        "tool_unknown",
        False,
    ),
    (
        "a prompt that is too long",
        400,
        openai_error(CONTEXT, "BadRequestError", 400),
        BadRequest,
        "8192 tokens",
        None,
        "context_length_exceeded",
        False,
    ),
    (
        "vLLM before 0.10: the object without `error` around it",
        400,
        b'{"object":"error","message":"bad n","type":"BadRequestError","param":"n","code":400}',
        BadRequest,
        "bad n",
        "n",
        None,
        False,
    ),
    (
        "a validation dump tells the place and the reason, not the whole prompt",
        400,
        openai_error(DUMP, "Bad Request", 400),
        BadRequest,
        "messages[0].content: Field required",
        "messages[0].content",
        None,
        False,
    ),
    (
        "vLLM 0.32 joins the place by points",
        400,
        openai_error(DUMP_0_32, "Bad Request", 400, "body.messages.0.content"),
        BadRequest,
        "messages[0].content: Input should be a valid string",
        "messages[0].content",
        None,
        False,
    ),
    (
        "a fault of the body as a whole has no place",
        400,
        openai_error(WHOLE_BODY_0_32, "Bad Request", 400, "body"),
        BadRequest,
        "Value error, thinking.budget_tokens must be less than max_tokens",
        None,
        None,
        False,
    ),
    (
        "FastAPI's own validation errors",
        422,
        b'{"detail":[{"type":"missing","loc":["body","input"],"msg":"Field required"}]}',
        BadRequest,
        "input: Field required",
        "input",
        None,
        False,
    ),
    (
        "Anthropic's shape",
        400,
        b'{"type":"error","error":{"type":"BadRequestError","message":"max_tokens: too many"}}',
        BadRequest,
        "max_tokens: too many",
        None,
        None,
        False,
    ),
    (
        "413 of an HTML page",
        413,
        b"<html><h1>413 Request Entity Too Large</h1>nginx/1.25 on vllm-a</html>",
        TooLarge,
        "refused the request without giving a reason (HTTP 413)",
        None,
        "request_too_large",
        False,
    ),
    (
        "a refusal without words",
        400,
        b"",
        BadRequest,
        "HTTP 400",
        None,
        None,
        False,
    ),
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
        "something that is no longer there",
        404,
        openai_error("Response with id 'resp_1' not found.", "invalid_request_error", 404),
        NotFound,
        "resp_1",
        None,
        None,
        False,
    ),
    (
        "what the model cannot do",
        501,
        openai_error("The model does not support Embeddings API", "NotImplementedError", 501),
        BadRequest,
        "does not support Embeddings",
        None,
        None,
        False,
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


@pytest.mark.parametrize(
    ("status", "body", "kind", "words", "param", "code", "retryable"),
    [pytest.param(*row[1:], id=row[0]) for row in TABLE],
)
def test_replies(
    status: int,
    body: bytes,
    kind: type[GatewayError],
    words: str,
    param: str | None,
    code: str | None,
    retryable: bool,
) -> None:
    result = reworded(Api.RESPONSES, status, body)
    assert type(result.error) is kind
    assert words in result.error.message
    assert (result.error.param, result.error.code) == (param, code)
    assert result.retryable is retryable
    assert result.error.detail is not None and f"HTTP {status}" in result.error.detail


@pytest.mark.parametrize(
    ("api", "data", "kind", "retryable"),
    [
        (Api.CHAT, openai_error("bad", "BadRequestError", 400), BadRequest, False),
        (Api.CHAT, openai_error("boom", "InternalServerError", 500), BackendFailed, True),
        (Api.CHAT, openai_error("boom", "InternalServerError", None), BackendFailed, True),
        (Api.CHAT, openai_error("bad", "invalid_request_error", None), BadRequest, False),
        (Api.CHAT, b"not json", BackendFailed, True),
        (
            Api.MESSAGES,
            b'{"type":"error","error":{"type":"internal_error","message":"1 validation error"}}',
            BackendFailed,
            True,
        ),
        (
            Api.MESSAGES,
            b'{"type":"error","error":{"type":"overloaded_error","message":"BackendOverloaded"}}',
            BackendOverloaded,
            True,
        ),
        (
            Api.RESPONSES,
            b'{"type":"response.failed","response":{"error":{"code":"server_error","message":"x"}}}',
            BackendFailed,
            True,
        ),
        (
            Api.RESPONSES,
            b'{"type":"response.failed","response":{"error":{"code":"insufficient_quota","message":""}}}',
            BackendMisconfigured,
            True,
        ),
        (
            Api.RESPONSES,
            b'{"type":"response.failed","response":{"error":{"code":"invalid_prompt","message":"x"}}}',
            BadRequest,
            False,
        ),
        (
            Api.RESPONSES,
            b'{"type":"error","code":"server_error","message":"x","param":null}',
            BackendFailed,
            True,
        ),
    ],
)
def test_events_within_a_stream(
    api: Api, data: bytes, kind: type[GatewayError], retryable: bool
) -> None:
    result = reworded(api, 200, data)
    assert (type(result.error), result.retryable) == (kind, retryable)


def test_what_a_server_says_of_itself_stays_with_the_operator() -> None:
    for status in (301, 401, 403, 429, 500, 502, 503, 504):
        body = openai_error("EngineDeadError in /opt/vllm on node-7", "x", status)
        error = reworded(Api.CHAT, status, body).error
        assert "node-7" not in error.message
        assert error.detail is not None and "node-7" in error.detail


def test_a_dump_does_not_repeat_the_prompt() -> None:
    error = reworded(Api.MESSAGES, 400, openai_error(DUMP, "Bad Request", 400)).error
    assert "whole prompt" not in error.message
    assert error.detail is not None and "whole prompt" not in error.detail


def test_an_endless_message_is_cut() -> None:
    body = openai_error("x" * 100_000, "BadRequestError", 400)
    error = reworded(Api.CHAT, 400, body).error
    assert len(error.message) == 2000
    assert error.detail is not None and len(error.detail) < 600


@pytest.mark.parametrize("status", [429, 503, 529])
def test_a_server_at_its_limit_says_how_long_to_wait(status: int) -> None:
    error = reworded(Api.CHAT, status, b"", retry_after=90.0).error
    assert error.retry_after == 90.0 and error.message.endswith("again in 90 s.")
    for said in (None, 0.0):
        error = reworded(Api.CHAT, status, b"", retry_after=said).error
        assert error.retry_after == 1 and error.message.endswith("again in a moment.")


def test_the_other_api_is_offered_when_chat_is_the_one_that_lacks() -> None:
    assert "/v1/completions" in reworded(Api.CHAT, 404, b"").error.message


@given(
    st.sampled_from(list(Api)),
    st.integers(200, 599),
    st.binary(max_size=30)
    | st.recursive(
        st.none() | st.integers() | st.text(max_size=5),
        lambda inner: (
            st.lists(inner, max_size=3)
            | st.dictionaries(
                st.sampled_from(["error", "detail", "message", "loc", "msg", "response", "code"]),
                inner,
                max_size=4,
            )
        ),
        max_leaves=10,
    ).map(lambda value: json.dumps(value).encode()),
)
def test_whatever_comes_the_client_is_told_something(api: Api, status: int, body: bytes) -> None:
    result = reworded(api, status, body)
    assert result.error.message
    blamed = result.error.outcome is Outcome.REJECTED
    # Whoever may do better elsewhere is not the request's own fault, a missing route excepted.
    assert not (blamed and result.retryable) or result.error.code == "unsupported_api"
