"""Responses an engine keeps: read again or cancelled at the very backend that made them."""

from __future__ import annotations

from collections.abc import Sequence
from urllib.parse import parse_qs

from gateway.edge.intake import NO_RESPONSE, Understand
from gateway.edge.paths import Endpoint
from gateway.errors import BadRequest, NotFound
from gateway.exchange.call import Call
from gateway.exchange.context import Context
from gateway.exchange.draft import Draft
from gateway.exchange.form import Form, OneForm
from gateway.exchange.headers import to_backend
from gateway.keys.keyring import Key
from gateway.records import Api

STORED = Endpoint(b"/v1/responses", Api.OTHER, Api.RESPONSES)
MAX_QUERY = 1024
LONG_QUERY = (
    f"The part of the URL behind `?` is longer than the {MAX_QUERY} bytes it may have here."
)
# What engines read as true (pydantic's words).
_TRUE = ("true", "1", "on", "yes", "t", "y")


def stored(method: str, path: str, query: bytes) -> Understand | None:
    """How to understand a request for a stored response; None if it is none.

    Args:
        path: canonical: `/responses/{id}` to GET, `/responses/{id}/cancel` to POST.
        query: for the engine, as the client wrote it.
    """
    parts = path.split("/")
    known = (method, len(parts), parts[3:]) in (("GET", 3, []), ("POST", 4, ["cancel"]))
    if not known or parts[1] != "responses" or not parts[2]:
        return None

    def understand(
        context: Context,
        endpoint: Endpoint,
        key: Key,
        headers: Sequence[tuple[bytes, bytes]],
        body: bytes,
        draft: Draft,
    ) -> Call:
        draft.method = method
        if len(query) > MAX_QUERY:
            raise BadRequest(LONG_QUERY)
        pin = context.pins.get(parts[2], key.id)
        backend = context.table.backends.get(pin.backend) if pin else None
        if pin is None or backend is None:
            raise NotFound(NO_RESPONSE.format(id=parts[2][:100]), code="response_not_found")
        route = context.table.routes[backend.model]
        draft.model, draft.bytes_in = route.model, len(body)
        draft.assigned_arm, draft.forced = backend.arm, True
        draft.weights, draft.revision = route.weights, route.revision
        upstream = route.settings.upstream_model or route.model
        target = b"/v1" + path.encode() + (b"?" + query if query else b"")
        return Call(
            method=method.encode(),
            forms=OneForm(Form(path=target, api=Api.RESPONSES, body=body), Api.OTHER),
            api=endpoint.api,
            headers=to_backend(headers, engine_fields=key.engine_fields),
            key=key,
            route=route,
            arm=route.arms[backend.arm],
            session=0,
            # Not in the draft: what is told again has no time to first token.
            stream=method == "GET" and _streamed(query),
            forced=True,
            pinned=backend,
            rename=(upstream.encode(), pin.name.encode()),
            generates=False,
        )

    return understand


def _streamed(query: bytes) -> bool:
    asked = parse_qs(query.decode("latin-1")).get("stream", [""])
    return asked[-1].lower() in _TRUE
