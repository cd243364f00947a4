"""What a refusal tells, checked for what every one has."""

from __future__ import annotations

from typing import Any

from tests.support.apis import MESSAGES, Dialect


def openai_error(response: Any) -> dict[str, Any]:
    error: dict[str, Any] = response.json()["error"]
    assert error.keys() == {"message", "type", "param", "code"}
    return error


def told(response: Any, dialect: Dialect) -> dict[str, Any]:
    """The error in the shape of the API, checked for what every error has."""
    assert response.headers["content-type"] == "application/json"
    assert response.headers["x-request-id"].startswith("req_")
    if dialect is not MESSAGES:
        return openai_error(response)
    body = response.json()
    assert body["type"] == "error"
    assert body["request_id"] == response.headers["x-request-id"]
    error: dict[str, Any] = body["error"]
    assert error.keys() == {"type", "message"}
    return error
