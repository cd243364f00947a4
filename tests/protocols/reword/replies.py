"""What an engine may answer, and what the client has to be told of it."""

from __future__ import annotations

import json
from typing import Any

from gateway.errors import GatewayError
from gateway.protocols.faults import reworded
from gateway.records import Api

# (case, status, body, error, its message contains, param, code, retryable)
Case = tuple[str, int, bytes, type[GatewayError], str, str | None, str | None, bool]


def openai_error(message: str, kind: str, code: Any, param: str | None = None) -> bytes:
    error = {"message": message, "type": kind, "param": param, "code": code}
    return json.dumps({"error": error}).encode()


def expect(case: Case) -> None:
    """Reword the reply, and compare."""
    _, status, body, kind, words, param, code, retryable = case
    result = reworded(Api.RESPONSES, status, body)
    assert type(result.error) is kind
    assert words in result.error.message
    assert (result.error.param, result.error.code) == (param, code)
    assert result.retryable is retryable
    assert result.error.detail is not None and f"HTTP {status}" in result.error.detail
