"""What vLLM says when it cannot answer, in its shape and its words."""

from __future__ import annotations

from http import HTTPStatus

import msgspec
from starlette.responses import Response

_NAMES = {400: "BadRequestError", 404: "NotFoundError", 503: "ServiceUnavailableError"}


class Fault(Exception):
    """An error reply.

    Args:
        status: the HTTP status, which vLLM repeats as `code`.
        param: the request field at fault.
    """

    def __init__(self, status: int, message: str, param: str | None = None) -> None:
        super().__init__(message)
        self.status = status
        self.message = message
        self.param = param

    @property
    def name(self) -> str:
        """vLLM's `type` for it."""
        return _NAMES.get(self.status) or HTTPStatus(self.status).phrase

    def response(self) -> Response:
        """In the OpenAI shape."""
        error = {
            "message": self.message,
            "type": self.name,
            "param": self.param,
            "code": self.status,
        }
        return json_response({"error": error}, self.status)

    def anthropic_response(self) -> Response:
        """In the Anthropic shape, which vLLM fills with its own type names."""
        error = {"type": self.name, "message": self.message}
        return json_response({"type": "error", "error": error}, self.status)


def unauthorized() -> Response:
    """The one error whose `error` is a string."""
    return json_response({"error": "Unauthorized"}, 401)


def unknown_model(name: str) -> Fault:
    return Fault(404, f"The model `{name}` does not exist.", "model")


def too_long(limit: int, prompt: int, wanted: int) -> Fault:
    """Prompt and wanted tokens exceed the context of `limit` tokens."""
    message = (
        f"This model's maximum context length is {limit} tokens. However, you requested {wanted} "
        f"output tokens and your prompt contains at least {prompt} input tokens, for a total of "
        f"at least {prompt + wanted} tokens. Please reduce the length of the input prompt or the "
        "number of requested output tokens."
    )
    return Fault(400, message, "input_tokens")


def json_response(content: object, status: int = 200) -> Response:
    return Response(msgspec.json.encode(content), status, media_type="application/json")
