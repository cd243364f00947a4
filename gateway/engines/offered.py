"""Which APIs a server offers, read from what it lists or from how it refuses an empty request."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from gateway.records import Api

ROUTES: dict[Api, str] = {
    Api.CHAT: "/v1/chat/completions",
    Api.COMPLETIONS: "/v1/completions",
    Api.MESSAGES: "/v1/messages",
    Api.RESPONSES: "/v1/responses",
    Api.EMBEDDINGS: "/v1/embeddings",
}

# A route that is there looks at the request and finds it empty.
_THERE = frozenset({400, 415, 422})
_ABSENT = frozenset({404, 405, 501})


class Listing(msgspec.Struct):
    """A server's `/openapi.json`, which vLLM has unless it was told not to."""

    paths: dict[str, msgspec.Raw]


def listed(listing: Listing) -> frozenset[str] | None:
    """The APIs whose routes a listing has; None where it has none, so is another server's."""
    return frozenset(api for api, path in ROUTES.items() if path in listing.paths) or None


def judged(statuses: Mapping[Api, int]) -> frozenset[str] | None:
    """The APIs that a server offers, from its answers to `{}`; None where they tell nothing.

    A route that answers in some other way (its key is wrong, it fails) counts as one that may be
    there. A server that seems to have none has not been understood.
    """
    if not any(status in _THERE for status in statuses.values()):
        return None
    return frozenset(api for api, status in statuses.items() if status not in _ABSENT)
