"""Who answers: a gateway, an engine, or another server; and which models a gateway tells of."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from gateway.cli.asking import Reply, Unanswered
from gateway.keys.keyring import NO_CREDENTIAL

SERVICE = "TTFT Gateway"
"""What `GET /` of a gateway calls itself."""


def is_gateway(front: Reply | Unanswered) -> bool:
    """Whether what `GET /` gives is a gateway's."""
    return isinstance(front, Reply) and front.member("service") == SERVICE


def has_gateways_id(headers: Mapping[str, str]) -> bool:
    """Whether a reply carries a request id of a gateway's form; OpenAI's have it, too."""
    return headers.get("x-request-id", "").startswith("req_")


def lacks_route(reply: Reply) -> bool:
    """Whether this is how a gateway answers where it has no route."""
    return has_gateways_id(reply.headers) and reply.member("error", "code") == "route_not_found"


def wants_key(listing: Reply | Unanswered) -> bool:
    """Whether this is how a gateway refuses to list its models without a key."""
    return isinstance(listing, Reply) and listing.member("error", "message") == NO_CREDENTIAL


def stands_at(root: str, ask: Callable[[str], Reply | Unanswered]) -> bool:
    """Whether a gateway answers under this address, be it behind someone else's front page."""
    return is_gateway(ask(f"{root}/")) or wants_key(ask(f"{root}/v1/models"))


def unlisted(root: str, listing: Reply | Unanswered) -> str:
    """Why an answer lists no models, as a sentence."""
    if isinstance(listing, Unanswered):
        return f"Nothing answers at {root}: {listing.detail}."
    if listing.status in (401, 403):
        return f"{root} does not know this key, or got none (HTTP {listing.status})."
    return f"{root} does not say which models this key may use (HTTP {listing.status})."


def listed(listing: Reply | Unanswered) -> list[dict[str, Any]]:
    """The models `GET /v1/models` tells of, each with an `id`; none if it tells nothing."""
    found = listing.member("data") if isinstance(listing, Reply) and listing.ok else None
    models = found if isinstance(found, list) else []
    return [one for one in models if isinstance(one, dict) and isinstance(one.get("id"), str)]
