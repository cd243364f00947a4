"""The paths clients use, right or nearly right, and what each one means.

People paste base URLs with and without `/v1`, with the `/api` of another relay, or with `/v1`
twice because their SDK adds its own; all of those reach the route they meant.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from gateway.records import Api


@dataclass(frozen=True, slots=True)
class Endpoint:
    """A route that is relayed to a backend.

    Attributes:
        path: canonical, as vLLM serves it.
        api: the metrics label, and the rules for tokens and usage.
        dialect: whose error shapes the client expects.
        streams: the body may ask for an event stream.
        family: the API a backend must have to be asked on this path.
    """

    path: bytes
    api: Api
    dialect: Api
    streams: bool = False

    @property
    def family(self) -> Api:
        return self.dialect if self.dialect is Api.MESSAGES else self.api


ENDPOINTS = (
    Endpoint(b"/v1/chat/completions", Api.CHAT, Api.CHAT, streams=True),
    Endpoint(b"/v1/completions", Api.COMPLETIONS, Api.COMPLETIONS, streams=True),
    Endpoint(b"/v1/messages", Api.MESSAGES, Api.MESSAGES, streams=True),
    Endpoint(b"/v1/responses", Api.RESPONSES, Api.RESPONSES, streams=True),
    Endpoint(b"/v1/messages/count_tokens", Api.OTHER, Api.MESSAGES),
    Endpoint(b"/v1/embeddings", Api.EMBEDDINGS, Api.EMBEDDINGS),
    Endpoint(b"/v1/rerank", Api.OTHER, Api.OTHER),
    Endpoint(b"/v1/score", Api.OTHER, Api.OTHER),
    Endpoint(b"/tokenize", Api.OTHER, Api.OTHER),
    Endpoint(b"/detokenize", Api.OTHER, Api.OTHER),
)

_PREFIX = re.compile(r"^(?:/+(?:api|anthropic|openai|v1)(?=/|$))*")
_SLASHES = re.compile(r"/{2,}")
_BY_NAME = {endpoint.path.decode().removeprefix("/v1"): endpoint for endpoint in ENDPOINTS}


def canonical(path: str) -> str:
    """The path without base-URL prefixes, repeated slashes and a trailing slash.

    >>> canonical("/api/v1/v1/chat/completions/")
    '/chat/completions'
    """
    return _SLASHES.sub("/", path[_PREFIX.match(path).end() :]).rstrip("/") or "/"  # type: ignore[union-attr]  # it matches the empty text, too


class HotPaths:
    """Looks up the endpoint of a raw request target; seen spellings cost one dict lookup.

    Args:
        size: spellings remembered, all of them short, so that nobody can fill memory with them.
    """

    def __init__(self, size: int = 1024) -> None:
        self._size = size
        self._seen: dict[bytes, Endpoint] = {e.path: e for e in ENDPOINTS}

    def find(self, target: bytes) -> Endpoint | None:
        """The endpoint of a target such as `/v1/messages?beta=true`, or None."""
        path = target.partition(b"?")[0]
        try:
            return self._seen[path]
        except KeyError:
            endpoint = _BY_NAME.get(canonical(path.decode("latin-1")))
            if endpoint is not None and len(path) < 100 and len(self._seen) < self._size:
                self._seen[path] = endpoint
            return endpoint
