"""One error hierarchy: what the gateway says when a request cannot be answered.

A `GatewayError` is written for the person who sent the request: its message says what to do
next and never names a backend. What the operator needs to know goes in `detail`, which only the
access log shows. `protocols.faults` renders an error in the shape of the client's own API.
"""

from __future__ import annotations

from typing import ClassVar

from gateway.records import Outcome, Refusal


class GatewayError(Exception):
    """An answer other than the one the client asked for.

    Args:
        message: for the client: what is wrong and what to do next.
        param: the request field at fault, as a path (`messages[0].role`).
        code: a machine-readable name, where clients look for one.
        detail: for the access log only; may name a backend.
        retry_after: seconds after which trying again makes sense.
        refusal: which limit or rule of the gateway turned the request away.
    """

    status: ClassVar[int] = 500
    openai_type: ClassVar[str] = "server_error"
    anthropic_type: ClassVar[str] = "api_error"
    outcome: ClassVar[Outcome] = Outcome.GATEWAY_ERROR
    default_code: ClassVar[str | None] = None
    default_refusal: ClassVar[Refusal | None] = None

    def __init__(
        self,
        message: str,
        *,
        param: str | None = None,
        code: str | None = None,
        detail: str | None = None,
        retry_after: float | None = None,
        refusal: Refusal | None = None,
    ) -> None:
        super().__init__(message)
        self.message = message
        self.param = param
        self.code = code or self.default_code
        self.detail = detail
        self.retry_after = retry_after
        self.refusal = refusal or self.default_refusal


class BadRequest(GatewayError):
    """The request itself is at fault."""

    status = 400
    openai_type = "invalid_request_error"
    anthropic_type = "invalid_request_error"
    outcome = Outcome.REJECTED
    default_refusal = Refusal.REQUEST


class Unauthorized(BadRequest):
    status = 401
    openai_type = "authentication_error"
    anthropic_type = "authentication_error"
    default_code = "invalid_api_key"
    default_refusal = Refusal.INVALID_KEY


class Forbidden(BadRequest):
    status = 403
    openai_type = "permission_error"
    anthropic_type = "permission_error"


class NotFound(BadRequest):
    status = 404
    anthropic_type = "not_found_error"


class MethodNotAllowed(BadRequest):
    status = 405


class RequestTimeout(BadRequest):
    """The client took too long to send its request."""

    status = 408


class Conflict(BadRequest):
    status = 409
    default_code = "conflict"


class TooLarge(BadRequest):
    status = 413
    anthropic_type = "request_too_large"
    default_code = "request_too_large"


class UpgradeRequired(BadRequest):
    status = 426
    default_code = "upgrade_required"


class HeadersTooLarge(BadRequest):
    status = 431
    default_code = "headers_too_large"


class RateLimited(BadRequest):
    status = 429
    openai_type = "rate_limit_error"
    anthropic_type = "rate_limit_error"
    default_code = "rate_limit_exceeded"


class Overloaded(GatewayError):
    """No room: the queue is full, or waiting for a place took too long."""

    status = 503
    openai_type = "overloaded_error"
    anthropic_type = "overloaded_error"
    default_code = "overloaded"


class BackendOverloaded(Overloaded):
    """The backend says that it has no room."""

    outcome = Outcome.BACKEND_ERROR


class BackendLimited(BackendOverloaded):
    """The backend says that it has no room, and in `retry_after` how long that will last."""


class NoBackend(GatewayError):
    """Nothing healthy serves the model now."""

    status = 503
    openai_type = "service_unavailable"
    outcome = Outcome.BACKEND_ERROR
    default_code = "no_backend"


class BackendFailed(GatewayError):
    """The backend cannot be reached, broke off, or answered what is not its API."""

    status = 502
    openai_type = "backend_error"
    outcome = Outcome.BACKEND_ERROR
    default_code = "backend_error"


class BackendMisconfigured(BackendFailed):
    """The backend turns the gateway itself away: no try helps, only the operator."""

    default_code = "backend_misconfigured"


class BackendTimeout(GatewayError):
    status = 504
    openai_type = "timeout_error"
    anthropic_type = "timeout_error"
    outcome = Outcome.TIMEOUT
    default_code = "timeout"


class ConfigError(Exception):
    """The configuration is at fault; `faults` lists every one, each as `path: what is wrong`."""

    def __init__(self, faults: list[str]) -> None:
        super().__init__("\n".join(faults))
        self.faults = faults
