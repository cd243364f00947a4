"""What a client is told when the engine finds its request at fault: the reason, and no more."""

from __future__ import annotations

import pytest

from gateway.errors import BadRequest, NotFound, TooLarge
from gateway.protocols.faults import reworded
from gateway.records import Api
from tests.protocols.reword.replies import Case, expect, openai_error

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

TABLE: list[Case] = [
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
]


@pytest.mark.parametrize("case", TABLE, ids=lambda case: case[0])
def test_replies(case: Case) -> None:
    expect(case)


def test_a_dump_does_not_repeat_the_prompt() -> None:
    error = reworded(Api.MESSAGES, 400, openai_error(DUMP, "Bad Request", 400)).error
    assert "whole prompt" not in error.message
    assert error.detail is not None and "whole prompt" not in error.detail


def test_an_endless_message_is_cut() -> None:
    body = openai_error("x" * 100_000, "BadRequestError", 400)
    error = reworded(Api.CHAT, 400, body).error
    assert len(error.message) == 2000
    assert error.detail is not None and len(error.detail) < 600
