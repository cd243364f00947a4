"""Error replies, as the official SDKs take them."""

from __future__ import annotations

import json
from typing import get_args

import anthropic
import openai
import pytest
from anthropic.types.shared.error_type import ErrorType

from gateway import errors
from gateway.errors import GatewayError
from gateway.protocols import faults
from gateway.records import Api
from tests.protocols.faults.clients import (
    SAYING,
    anthropic_client,
    ask_chat,
    ask_messages,
    openai_client,
)

OPENAI_APIS = [Api.CHAT, Api.COMPLETIONS, Api.RESPONSES, Api.EMBEDDINGS, Api.OTHER]

# (our error, openai's exception, anthropic's exception and error type)
ERRORS: list[tuple[type[GatewayError], type[Exception], type[Exception], str]] = [
    (
        errors.BadRequest,
        openai.BadRequestError,
        anthropic.BadRequestError,
        "invalid_request_error",
    ),
    (
        errors.Unauthorized,
        openai.AuthenticationError,
        anthropic.AuthenticationError,
        "authentication_error",
    ),
    (
        errors.Forbidden,
        openai.PermissionDeniedError,
        anthropic.PermissionDeniedError,
        "permission_error",
    ),
    (errors.NotFound, openai.NotFoundError, anthropic.NotFoundError, "not_found_error"),
    (errors.Conflict, openai.ConflictError, anthropic.ConflictError, "invalid_request_error"),
    (
        errors.TooLarge,
        openai.APIStatusError,
        anthropic.APIStatusError,
        "request_too_large",
    ),
    (errors.RateLimited, openai.RateLimitError, anthropic.RateLimitError, "rate_limit_error"),
    (errors.Overloaded, openai.InternalServerError, anthropic.APIStatusError, "overloaded_error"),
    (errors.NoBackend, openai.InternalServerError, anthropic.APIStatusError, "api_error"),
    (errors.BackendFailed, openai.InternalServerError, anthropic.InternalServerError, "api_error"),
    (
        errors.BackendTimeout,
        openai.InternalServerError,
        anthropic.InternalServerError,
        "timeout_error",
    ),
    (GatewayError, openai.InternalServerError, anthropic.InternalServerError, "api_error"),
]


@pytest.mark.parametrize(("ours", "theirs"), [(row[0], row[1]) for row in ERRORS])
@pytest.mark.parametrize("api", OPENAI_APIS)
def test_openai_sdk_raises_its_own_error(
    api: Api, ours: type[GatewayError], theirs: type[openai.APIStatusError]
) -> None:
    error = ours(SAYING, param="messages[0].role", code="some_code")
    body = faults.body(api, error, "req-1")
    with pytest.raises(openai.APIStatusError) as caught:
        ask_chat(openai_client(body, ours.status, "application/json"))
    assert type(caught.value) is theirs
    assert SAYING in caught.value.message
    assert (caught.value.code, caught.value.param) == ("some_code", "messages[0].role")
    assert caught.value.type == ours.openai_type
    assert set(json.loads(body)["error"]) == {"message", "type", "param", "code"}


@pytest.mark.parametrize(("ours", "theirs", "kind"), [(row[0], row[2], row[3]) for row in ERRORS])
def test_anthropic_sdk_raises_its_own_error(
    ours: type[GatewayError], theirs: type[anthropic.APIStatusError], kind: str
) -> None:
    body = faults.body(Api.MESSAGES, ours(SAYING), "req-1")
    with pytest.raises(theirs) as caught:
        ask_messages(anthropic_client(body, ours.status, "application/json"))
    assert caught.value.status_code == ours.status
    assert caught.value.type == kind
    assert caught.value.api_message == SAYING
    assert json.loads(body)["request_id"] == "req-1"
    assert json.loads(body)["type"] == "error"


# Anthropic documents `request_too_large` for 413; its SDK's own list leaves it out.
ANTHROPIC_TYPES = {*get_args(ErrorType), "request_too_large"}


def every_error(kind: type[GatewayError] = GatewayError) -> list[type[GatewayError]]:
    found = [kind] if kind.__module__ == errors.__name__ else []
    return found + [one for child in kind.__subclasses__() for one in every_error(child)]


@pytest.mark.parametrize("ours", every_error())
def test_every_error_has_a_type_that_anthropic_knows(ours: type[GatewayError]) -> None:
    assert ours.anthropic_type in ANTHROPIC_TYPES


def test_details_for_the_operator_never_reach_the_client() -> None:
    error = errors.BackendFailed("Send it again.", detail="vllm-a at 10.0.0.7 said no")
    for api in Api:
        said = faults.body(api, error, "r") + faults.stream_event(api, error, "r", 0)
        assert b"vllm-a" not in said and b"10.0.0.7" not in said
