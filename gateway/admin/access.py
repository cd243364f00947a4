"""Who may use the admin API, checked before anything of a request's body is read."""

from __future__ import annotations

import hmac
from collections.abc import Callable, Coroutine, Mapping, Sequence
from hashlib import sha256
from typing import Any

from fastapi import Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.routing import APIRoute
from pydantic import SecretStr

from gateway.admin.control import Control
from gateway.errors import BadRequest, Forbidden, Unauthorized
from gateway.settings import AdminSettings

OFF = (
    "The admin API is off, because the configuration sets no admin key. Set admin.key "
    "(`gateway init` writes a configuration with a fresh one) and reload with SIGHUP."
)
SEND = "Send admin.key of the configuration as `Authorization: Bearer <key>`."
READ_ONLY = "admin.read_key may only read; to change something send admin.key."


def authorize(admin: AdminSettings, method: str, headers: Mapping[str, str]) -> None:
    """Returns if the request may go on.

    Raises:
        Forbidden: there is no admin key, or the key may only read.
        Unauthorized: no key, or none of these.
    """
    if admin.key is None:
        raise Forbidden(OFF, code="admin_off")
    scheme, _, token = headers.get("authorization", "").partition(" ")
    sent = token.strip() if scheme.lower() == "bearer" else headers.get("x-api-key", "").strip()
    # Both are always compared, so that the time taken does not tell which one was near.
    writes, reads = _same(sent, admin.key), _same(sent, admin.read_key)
    if writes or (reads and method == "GET"):
        return
    if reads:
        raise Forbidden(READ_ONLY, code="read_only_key")
    raise Unauthorized(f"This is not an admin key. {SEND}" if sent else f"No key came. {SEND}")


def _same(sent: str, key: SecretStr | None) -> bool:
    wanted = key.get_secret_value() if key is not None else ""
    # Digests, since a comparison of unequal lengths ends early.
    equal = hmac.compare_digest(sha256(sent.encode()).digest(), sha256(wanted.encode()).digest())
    return equal and key is not None


def guarded(control: Control) -> type[APIRoute]:
    """A route class that authorizes first and words a faulty body as this gateway words errors."""

    class Guarded(APIRoute):
        def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
            handle = super().get_route_handler()

            async def guard(request: Request) -> Response:
                authorize(control.settings.admin, request.method, request.headers)
                try:
                    return await handle(request)
                except RequestValidationError as error:
                    raise reworded(error.errors()) from None

            return guard

    return Guarded


def reworded(faults: Sequence[Mapping[str, Any]]) -> BadRequest:
    """Every fault of a request, each with the field at fault."""
    named = [(_field(fault["loc"]), _sentence(fault)) for fault in faults]
    message = "; ".join(f"{field}: {sentence}" if field else sentence for field, sentence in named)
    return BadRequest(message, param=named[0][0] or None)


def _field(place: Sequence[str | int]) -> str:
    """`('body', 'weights', 'a')` → `weights.a`; empty for the body as a whole."""
    return ".".join(str(part) for part in place[1:] if not isinstance(part, int))


def _sentence(fault: Mapping[str, Any]) -> str:
    if fault["type"] == "json_invalid":
        return f"the body is not JSON: {fault['ctx']['error']}"
    if len(fault["loc"]) == 1:
        return "the body must be a JSON object, sent with `content-type: application/json`"
    if fault["type"] == "extra_forbidden":
        return "there is no such field"
    message = str(fault["msg"])
    return message[0].lower() + message[1:]
