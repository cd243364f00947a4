"""From bytes to a `Call`: what is asked, of which model and arm, and the body that says so.

Every refusal here names the field and says what to send instead.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Protocol

from gateway.clients.session import identify, session_hash
from gateway.edge.decode import decode
from gateway.edge.paths import Endpoint
from gateway.edge.peek import Peek, peek
from gateway.errors import BadRequest, Forbidden, NotFound
from gateway.exchange.call import Call
from gateway.exchange.context import Context
from gateway.exchange.draft import Draft
from gateway.exchange.form import Form, Forms, OneForm, TwoForms
from gateway.exchange.headers import to_backend
from gateway.exchange.pins import Pin
from gateway.keys.keyring import Key
from gateway.protocols.splice import set_fields
from gateway.records import Api, Refusal
from gateway.routing.table import Arm, Route

NO_RESPONSE = (
    "There is no response `{id}` for this key: another key or model made it, its server has gone, "
    "or it was too long ago."
)

# Clients of these APIs may send no cap, and mean the model's own.
_CAPS = {Api.RESPONSES: "max_output_tokens", Api.MESSAGES: "max_tokens"}

# Fewer than nearly any text has, so that a prompt is taken for longer than it is.
_BYTES_PER_TOKEN = 3

Headers = Sequence[tuple[bytes, bytes]]


class Understand(Protocol):
    """How a request becomes a call: `understand`, or a stand-in for another kind of request."""

    def __call__(
        self,
        context: Context,
        endpoint: Endpoint,
        key: Key,
        headers: Headers,
        body: bytes,
        draft: Draft,
    ) -> Call: ...


def understand(
    context: Context, endpoint: Endpoint, key: Key, headers: Headers, body: bytes, draft: Draft
) -> Call:
    """Read a request and decide where it goes; facts are noted in `draft` as they are learnt.

    Raises:
        BadRequest, Forbidden, NotFound, TooLarge: what is wrong with the request.
    """
    limit = context.settings.server.max_body_mib * 2**20
    fields = dict(headers)
    body = decode(body, fields.get(b"content-encoding", b""), limit)
    draft.bytes_in = len(body)
    seen = peek(body, endpoint.api)
    draft.requested_model = seen.model[:200]
    route, arm_name = _resolve(context, key, seen.model)
    draft.model = route.model
    draft.stream = endpoint.streams and seen.stream
    arm_name = fields.get(b"x-gateway-arm", b"").decode("latin-1").strip() or arm_name
    arm, session, pinned = _assign(context, key, route, headers, seen, arm_name, draft)
    changes = _changes(endpoint, key, route, seen)
    forms = _forms(endpoint, body, seen, changes, _cap(endpoint, route, seen, body), draft)
    _check_offered(route, endpoint, forms)
    upstream = route.settings.upstream_model or route.model
    return Call(
        method=b"POST",
        forms=forms,
        api=endpoint.api,
        headers=to_backend(headers, engine_fields=key.engine_fields),
        key=key,
        route=route,
        arm=arm,
        session=session,
        stream=draft.stream,
        forced=draft.forced,
        pinned=context.table.backends.get(pinned.backend) if pinned else None,
        rename=(upstream.encode(), seen.model.encode()),
        withhold_usage="stream_options" in changes,
        echo_prompt=seen.echo_prompt,
    )


def known_models(context: Context, key: Key) -> list[str]:
    """The model ids this key may use, for `/v1/models` and for messages that list them.

    Aliases are among them, but for patterns: who picks a model from a list could not find one.
    """
    named = context.table.named
    return [name for name, route in named.items() if key.allows_model(route.model)]


def _resolve(context: Context, key: Key, requested: str) -> tuple[Route, str | None]:
    try:
        route, arm = context.table.resolve(requested)
    except KeyError:
        raise NotFound(
            f"There is no model `{requested[:200]}` here. {_offer(context, key)}",
            param="model",
            code="model_not_found",
        ) from None
    if not key.allows_model(route.model):
        raise Forbidden(
            f"This key may not use model `{requested[:200]}`. {_offer(context, key)}",
            param="model",
            code="model_not_allowed",
            refusal=Refusal.MODEL_NOT_ALLOWED,
        )
    return route, arm


def _check_offered(route: Route, endpoint: Endpoint, forms: Forms) -> None:
    any_there = False
    for arm in route.arms.values():
        for backend in arm.backends:
            if forms.fits(backend):
                return
            any_there = True
    if any_there:
        path = endpoint.path.decode()
        raise NotFound(
            f"No server of model `{route.model}` offers {path}; use another API of it.",
            code="unsupported_api",
        )


def _offer(context: Context, key: Key) -> str:
    names = known_models(context, key)
    if not names:
        return "This key may use no model; ask the operator to allow one."
    return "Models for this key: " + ", ".join(f"`{name}`" for name in names[:50]) + "."


def _assign(
    context: Context,
    key: Key,
    route: Route,
    headers: Headers,
    seen: Peek,
    arm_name: str | None,
    draft: Draft,
) -> tuple[Arm, int, Pin | None]:
    session = _session(key, route, headers, seen, draft)
    pinned = _pinned(context, key, route, seen)
    if pinned is not None and arm_name in (None, pinned.arm):
        arm = route.arms.get(pinned.arm)
        forced = True
    elif arm_name is not None:
        arm, forced, pinned = _chosen(key, route, arm_name), True, None
    else:
        arm, forced = route.assign(session), False
    if arm is None:
        raise _no_previous(seen)
    draft.assigned_arm, draft.forced = arm.name, forced
    draft.weights, draft.revision = route.weights, route.revision
    return arm, session, pinned


def _session(key: Key, route: Route, headers: Headers, seen: Peek, draft: Draft) -> int:
    unit = route.settings.experiment.unit
    if unit == "request":
        identity, source = draft.id.encode(), "request"
    elif unit == "key":
        identity, source = b"", "key"
    else:
        identity, source = identify(
            headers,
            metadata_user_id=seen.metadata_user_id,
            prompt_cache_key=seen.prompt_cache_key,
            fingerprint=seen.fingerprint,
        )
    session = session_hash(key.id, identity)
    draft.session, draft.session_source = f"{session:016x}", source
    return session


def _chosen(key: Key, route: Route, name: str) -> Arm:
    arm = route.arms.get(name)
    may = key.allows_arm(name)
    # Who is not to know which arm serves is not told which there are, either.
    if not may and (arm is not None or not key.expose_arm):
        raise Forbidden(
            f"This key may not choose arm `{name[:100]}` by hand; leave the arm out of the "
            "request.",
            code="arm_not_allowed",
            refusal=Refusal.ARM_NOT_ALLOWED,
        )
    if arm is None:
        known = [one for one in route.arms if key.expose_arm or key.allows_arm(one)]
        names = ", ".join(f"`{one}`" for one in known) or "none for this key"
        raise BadRequest(
            f"Model `{route.model}` has no arm `{name[:100]}`; it has {names}.",
            param="model",
            code="arm_not_found",
        )
    return arm


def _pinned(context: Context, key: Key, route: Route, seen: Peek) -> Pin | None:
    """Where the response that this request continues is kept.

    Without its pin a request goes nowhere: a backend knows of no keys, and would go on with
    whatever it holds under that id.
    """
    if seen.previous_response_id is None:
        return None
    pin = context.pins.get(seen.previous_response_id, key.id)
    if pin is None or pin.model != route.model or pin.backend not in context.table.backends:
        raise _no_previous(seen)
    return pin


def _no_previous(seen: Peek) -> NotFound:
    message = NO_RESPONSE.format(id=(seen.previous_response_id or "")[:100])
    return NotFound(
        f"{message} Send the whole conversation as `input` instead.",
        param="previous_response_id",
        code="previous_response_not_found",
    )


def _cap(endpoint: Endpoint, route: Route, seen: Peek, body: bytes) -> dict[str, bytes]:
    """The limit of output to add: the model's own, where it has one and the client sent none.

    An engine refuses a prompt that leaves no room for the whole of it, so near the window it stays
    away; where the guess was wrong, the exchange asks again without it.
    """
    cap = route.settings.max_output_tokens
    if cap is None or endpoint.api not in _CAPS or seen.caps_output:
        return {}
    window = route.context_window
    if window is not None and len(body) // _BYTES_PER_TOKEN + cap > window:
        return {}
    return {_CAPS[endpoint.api]: b"%d" % cap}


def _forms(
    endpoint: Endpoint,
    body: bytes,
    seen: Peek,
    changes: dict[str, bytes | None],
    cap: dict[str, bytes],
    draft: Draft,
) -> Forms:
    if endpoint.family is Api.MESSAGES or endpoint.family is Api.RESPONSES:
        return TwoForms(
            path=endpoint.path,
            needs=endpoint.family,
            api=endpoint.api,
            body=body,
            fields=seen.fields,
            changes={**changes, **cap},
            cap=next(iter(cap), None),
            model=seen.model,
            request_id=draft.id,
            created=int(draft.at),
        )
    if changes:
        body = set_fields(body, changes, seen.fields)
    return OneForm(Form(path=endpoint.path, api=endpoint.api, body=body), endpoint.api)


def _changes(endpoint: Endpoint, key: Key, route: Route, seen: Peek) -> dict[str, bytes | None]:
    """The top-level fields to set (as JSON) or to remove (None)."""
    changes: dict[str, bytes | None] = {}
    upstream = route.settings.upstream_model or route.model
    if upstream != seen.model:
        changes["model"] = json.dumps(upstream).encode()
    if not key.engine_fields:
        changes.update(dict.fromkeys(seen.engine_fields))
    if key.cache_salt and endpoint.api is not Api.OTHER:
        # Prefix-cache hits are visible as speed; a salt keeps one key from probing another's.
        changes["cache_salt"] = json.dumps(key.id).encode()
    if endpoint.api in (Api.CHAT, Api.COMPLETIONS) and seen.stream and not seen.include_usage:
        changes["stream_options"] = seen.stream_options_with_usage()
    return changes
