"""Errors in the shape of each client API, whole, within a stream, and as backends word them."""

from __future__ import annotations

from typing import Any

import msgspec

from gateway.errors import BadRequest, GatewayError, NoBackend, Overloaded, RateLimited
from gateway.protocols.reword import Reworded, is_error, reworded
from gateway.records import Api

__all__ = ["Reworded", "body", "is_error", "keepalive", "reworded", "stream_event"]

_DONE = b"data: [DONE]\n\n"


def body(api: Api, error: GatewayError, request_id: str) -> bytes:
    """The JSON body of an error reply, as clients of `api` expect it."""
    if api is Api.MESSAGES:
        return msgspec.json.encode(_anthropic(error, request_id))
    return msgspec.json.encode({"error": _openai(error)})


def stream_event(
    api: Api,
    error: GatewayError,
    request_id: str,
    sequence: int,
    *,
    response_id: str | None = None,
    model: str = "",
) -> bytes:
    """The events that end a stream which cannot be completed.

    Args:
        sequence: for Responses, the `sequence_number` that comes next; 0 if no event was sent.
        response_id, model: for Responses, what the stream calls itself and its model. With another
            id than `response.created` had, the official SDK raises instead of reporting.
    """
    if api is Api.MESSAGES:
        return _event("error", _anthropic(error, request_id))
    if api is Api.RESPONSES:
        response = _response(response_id or f"resp_{request_id}", model)
        events = b""
        if sequence == 0:
            events = _lifecycle("created", 0, {**response, "status": "in_progress"})
            sequence = 1
        failure = {"code": _response_code(error), "message": error.message}
        return events + _lifecycle("failed", sequence, {**response, "error": failure})
    return b"data: " + body(api, error, request_id) + b"\n\n" + _DONE


def keepalive(api: Api, *, begun: bool = True) -> bytes:
    """A sign of life between events that every client of `api` lets pass.

    Args:
        begun: for Responses, whether there may be an event. The official SDK's accumulator wants
            `response.created` first; until then only a comment passes.
    """
    if api is Api.MESSAGES:
        return b'event: ping\ndata: {"type": "ping"}\n\n'
    if api is Api.RESPONSES and begun:
        return b'data: {"type":"ping"}\n\n'
    return b": keep-alive\n\n"


def _openai(error: GatewayError) -> dict[str, Any]:
    return {
        "message": error.message,
        "type": error.openai_type,
        "param": error.param,
        "code": error.code,
    }


def _anthropic(error: GatewayError, request_id: str) -> dict[str, Any]:
    return {
        "type": "error",
        "error": {"type": error.anthropic_type, "message": error.message},
        "request_id": request_id,
    }


def _event(name: str, data: dict[str, Any]) -> bytes:
    return b"event: " + name.encode() + b"\ndata: " + msgspec.json.encode(data) + b"\n\n"


def _lifecycle(stage: str, sequence: int, response: dict[str, Any]) -> bytes:
    name = f"response.{stage}"
    return _event(name, {"type": name, "sequence_number": sequence, "response": response})


def _response(response_id: str, model: str) -> dict[str, Any]:
    return {
        "id": response_id,
        "object": "response",
        "created_at": 0,
        "status": "failed",
        "error": None,
        "incomplete_details": None,
        "instructions": None,
        "metadata": {},
        "model": model,
        "output": [],
        "parallel_tool_calls": True,
        "temperature": None,
        "tool_choice": "auto",
        "tools": [],
        "top_p": None,
        "usage": None,
    }


def _response_code(error: GatewayError) -> str:
    """The code of `response.error`; clients choose by it whether to try again."""
    if isinstance(error, RateLimited):
        quota = error.code == "insufficient_quota"
        return "insufficient_quota" if quota else "rate_limit_exceeded"
    if isinstance(error, Overloaded | NoBackend):
        return "server_is_overloaded"
    if error.code == "context_length_exceeded":
        return error.code
    return "invalid_prompt" if isinstance(error, BadRequest) else "server_error"
