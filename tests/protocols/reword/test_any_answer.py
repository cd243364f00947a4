"""Errors told within a stream, and answers of any kind: the client is told something of each."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.errors import (
    BackendFailed,
    BackendMisconfigured,
    BackendOverloaded,
    BadRequest,
    GatewayError,
)
from gateway.protocols.faults import reworded
from gateway.records import Api, Outcome
from tests.protocols.reword.replies import openai_error


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
        *(
            (
                Api.MESSAGES,
                b'{"type":"error","error":{"type":"%b","message":"x"}}' % kind,
                BackendMisconfigured,
                True,
            )
            for kind in (b"authentication_error", b"permission_error", b"billing_error")
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
