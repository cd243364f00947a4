"""A backend's error, in whatever shape it came, as what the client should be told.

Shapes met: OpenAI's, vLLM's `{"error": "Unauthorized"}`, the flat object of vLLM before 0.10,
FastAPI's `{"detail": …}`, validation dumps, Anthropic's, `response.failed`, plain text and HTML.
A fault of the request keeps its message. A fault of the server is told in the gateway's words:
the original may name hosts, paths or upstream models, and goes to the access log.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from typing import Any

import msgspec

from gateway.errors import (
    BackendFailed,
    BackendLimited,
    BackendMisconfigured,
    BackendOverloaded,
    BackendTimeout,
    BadRequest,
    GatewayError,
    NotFound,
    TooLarge,
)
from gateway.records import Api

_MAX_MESSAGE = 2000
_MAX_DETAIL = 500

_FAILED = "The model's server failed to answer; send the request again."
_BUSY = "The model's server is at its limit; send the request again in a moment."
# Codex reads the wait from these very words.
_LIMITED = "The model's server is at its limit; try again in {seconds} s."
_SLOW = "The model's server took too long to answer; send the request again."
_CREDENTIALS = "The gateway's own access to the model's server was refused; tell the operator."
_QUOTA = "The gateway's own quota at the model's server is used up; tell the operator."
_UNKNOWN_MODEL = "The model's server does not know the model it should serve; tell the operator."
_NO_ROUTE = "The server of this model does not offer this API; use another one, like {other}."
_REFUSED = "The model's server refused the request without giving a reason (HTTP {status})."

_CONTEXT = re.compile(
    r"maximum context length|maximum model length|context (?:window|length) exceeded"
    r"|prompt is too long|longer than the (?:maximum )?model|max_model_len",
    re.IGNORECASE,
)
_NO_MODEL = re.compile(r"^\W*(?:the )?model\b.*(?:does not exist|not found)", re.IGNORECASE)
# What error events call a fault of the request, and a server without room, as type or as code.
_REQUEST_FAULTS = ("badrequest", "invalid_request", "invalid_prompt", "context_length_exceeded")
_FULL = ("overloaded", "rate_limit")
_KEY_FAULTS = ("authentication_error", "permission_error")
_USED_UP = ("insufficient_quota", "billing_error")
_WAIT = re.compile(r"again in\s*(\d{1,9}(?:\.\d{1,9})?)\s*(ms|s)", re.IGNORECASE)
# A tuple, or the same joined by points (vLLM 0.32).
_FAULT_PLACE = re.compile(r"'loc': (?:\((.*?)\)|'(.*?)')")
_FAULT_TEXT = re.compile(r"'msg': (?:'((?:[^'\\]|\\.)*)'|\"((?:[^\"\\]|\\.)*)\")")


@dataclass(frozen=True, slots=True)
class Reworded:
    """What the client should be told, and what else follows.

    Attributes:
        retryable: another backend may do better.
        full: the backend works, but has no room for now.
    """

    error: GatewayError
    retryable: bool
    full: bool = False


@dataclass(frozen=True, slots=True)
class _Said:
    """What a backend's error body says, as far as it is understood."""

    message: str = ""
    kind: str = ""
    code: int | str | None = None
    param: str | None = None


class _Whole(msgspec.Struct, gc=False):
    object: Any = None
    type: Any = None
    error: Any = None


_whole = msgspec.json.Decoder(_Whole).decode


def reworded(api: Api, status: int, body: bytes, *, retry_after: float | None = None) -> Reworded:
    """Judge an error that a backend answered with.

    Args:
        status: the reply's status, or a 2xx for an error event within a stream, whose own code
            then counts.
        body: the reply's body, or the event's data.
        retry_after: seconds, as the backend said.
    """
    said = _said(body)
    if status < 300:
        status = _status_within(said)
        body = b""  # what is not understood may be a piece of the answer
    # A message that was understood is told without the prompt that a dump repeats.
    text = said.message or body[:_MAX_DETAIL].decode("utf-8", "replace")
    detail = f"HTTP {status}: {text[:_MAX_DETAIL]}"
    if status in (401, 403, 407):
        return Reworded(BackendMisconfigured(_CREDENTIALS, detail=detail), retryable=True)
    if status == 402 or said.code in _USED_UP or said.kind in _USED_UP:
        return Reworded(BackendMisconfigured(_QUOTA, detail=detail), retryable=True)
    if status in (429, 503, 529):
        # 503 is also the word of a server, or of a proxy before it, that is out of service.
        error = _busy(retry_after or _wait_in(text), detail)
        return Reworded(error, retryable=True, full=status != 503)
    if status in (408, 504):
        return Reworded(BackendTimeout(_SLOW, detail=detail), retryable=True)
    if status in (404, 405, 501):
        return _not_there(api, status, said, detail)
    if 400 <= status < 499:
        return Reworded(_request_at_fault(status, said, detail), retryable=False)
    return Reworded(BackendFailed(_FAILED, detail=detail), retryable=True)


def is_error(body: bytes) -> bool:
    """Whether a reply is an error, whatever its status: some servers say so under a 200.

    A response of the Responses API has its error within, and is an answer.
    """
    try:
        reply = _whole(body)
    except (msgspec.DecodeError, RecursionError):
        return False
    if reply.error:
        return reply.object is None
    return bool(reply.object == "error" or reply.type == "error")


def _busy(retry_after: float | None, detail: str) -> GatewayError:
    if not retry_after:
        return BackendOverloaded(_BUSY, detail=detail, retry_after=1)
    message = _LIMITED.format(seconds=math.ceil(retry_after))
    return BackendLimited(message, detail=detail, retry_after=retry_after)


def _wait_in(message: str) -> float | None:
    """Seconds to wait, from a message: within a stream there is no header to say it."""
    wait = _WAIT.search(message)
    if wait is None:
        return None
    return float(wait[1]) / (1000 if wait[2].lower() == "ms" else 1)


def _not_there(api: Api, status: int, said: _Said, detail: str) -> Reworded:
    """404 and its relatives mean three things: no such route, no such model, or no such thing."""
    if said.message in ("", "Not Found", "Method Not Allowed"):
        other = "/v1/chat/completions" if api is not Api.CHAT else "/v1/completions"
        return Reworded(
            NotFound(_NO_ROUTE.format(other=other), code="unsupported_api", detail=detail),
            retryable=True,
        )
    if status == 404 and _NO_MODEL.search(said.message):
        return Reworded(BackendMisconfigured(_UNKNOWN_MODEL, detail=detail), retryable=True)
    kind = NotFound if status == 404 else BadRequest
    return Reworded(kind(said.message, param=said.param, detail=detail), retryable=False)


def _request_at_fault(status: int, said: _Said, detail: str) -> GatewayError:
    message = said.message or _REFUSED.format(status=status)
    if status == 413:
        return TooLarge(message, param=said.param, detail=detail)
    code = "context_length_exceeded" if _CONTEXT.search(message) else None
    if code is None and isinstance(said.code, str) and said.code:
        code = said.code
    return BadRequest(message, param=said.param, code=code, detail=detail)


def _status_within(said: _Said) -> int:
    """The status that an error event stands for; vLLM gives it as the event's code."""
    if isinstance(said.code, int) and 400 <= said.code <= 599:
        return said.code
    kind = f"{said.kind} {said.code}".lower()
    if any(word in kind for word in _REQUEST_FAULTS):
        return 400
    if any(word in kind for word in _KEY_FAULTS):
        return 401
    return 429 if any(word in kind for word in _FULL) else 500


def _said(body: bytes) -> _Said:
    try:
        reply = msgspec.json.decode(body)
    except (msgspec.DecodeError, RecursionError):
        return _Said()
    if not isinstance(reply, dict):
        return _Said()
    if isinstance(reply.get("response"), dict):
        reply = reply["response"]
    if "detail" in reply:
        return _from_detail(reply["detail"])
    error = reply.get("error")
    if error is None:
        error = reply
    return _from_error(error) if isinstance(error, dict) else _Said(_text(error))


def _from_error(error: dict[str, Any]) -> _Said:
    message, param = _text(error.get("message")), _text(error.get("param")) or None
    place = _FAULT_PLACE.search(message)
    text = _FAULT_TEXT.search(message)
    if place is not None and text is not None:
        # A validation dump repeats the whole request; the place and the reason are enough.
        parts = place[2].split(".") if place[1] is None else place[1].split(",")
        param = _path([part.strip().strip("'") for part in parts]) or None
        message = f"{param}: {text[1] or text[2]}" if param else text[1] or text[2]
    code = error.get("code")
    return _Said(
        message=message[:_MAX_MESSAGE],
        kind=_text(error.get("type")),
        code=code if isinstance(code, int | str) else None,
        param=param,
    )


def _from_detail(detail: Any) -> _Said:
    """FastAPI's own form: a sentence, or a list of faults, of which the first is told."""
    first = detail[0] if isinstance(detail, list) and detail else detail
    if not isinstance(first, dict):
        return _Said(_text(first)[:_MAX_MESSAGE])
    place = first.get("loc")
    param = _path([str(part) for part in place]) if isinstance(place, list) else ""
    message = _text(first.get("msg"))
    if param:
        message = f"{param}: {message}"
    return _Said(message[:_MAX_MESSAGE], param=param or None)


def _path(parts: list[str]) -> str:
    """`body, messages, 0, role` as `messages[0].role`."""
    path = ""
    for part in parts[1:] if parts[:1] == ["body"] else parts:
        if part.isdigit():
            path += f"[{part}]"
        elif part:
            path += f".{part}" if path else part
    return path


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""
