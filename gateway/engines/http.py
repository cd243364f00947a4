"""Questions to an engine over HTTP: bounded in time and length."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

import httpx

from gateway.settings import BackendSettings

# An engine with a thousand adapters lists them in half of this.
LONGEST_ANSWER = 2**20
# A page of a thousand adapters' series.
LONGEST_PAGE = 8 * 2**20


class Reachable(Protocol):
    """Where a backend's engine is, and what key it wants."""

    @property
    def url(self) -> str: ...
    @property
    def api_key(self) -> bytes | None: ...
    @property
    def settings(self) -> BackendSettings: ...


ClientOf = Callable[[Reachable], httpx.AsyncClient]
"""The client that reaches a backend; it keeps no connection, and is closed by who made it."""


class EngineHttp:
    """Asks engines, one connection a question.

    Args:
        timeout: seconds for each step of a question; the caller bounds the whole.
    """

    def __init__(self, client_of: ClientOf, timeout: float = 5.0) -> None:
        self._client_of = client_of
        self._timeout = timeout

    async def get(
        self, backend: Reachable, path: str, longest: int = LONGEST_ANSWER, patience: float = 1.0
    ) -> bytes | None:
        """The body of the answer, whatever its status below 500; None for one that is too long,
        or compressed all the same: what it would become could be of any length.

        Args:
            patience: how many times the timeout it may take.

        Raises:
            httpx.HTTPError, httpx.InvalidURL: there was no answer, or the server failed.
        """
        body = bytearray()
        async with self._client_of(backend).stream(
            "GET",
            backend.url + path,
            headers=_headers(backend),
            timeout=self._timeout * patience,
        ) as reply:
            if reply.is_server_error:
                reply.raise_for_status()
            if reply.headers.get("content-encoding", "identity") != "identity":
                return None
            async for piece in reply.aiter_bytes():
                body += piece
                if len(body) > longest:
                    return None
        return bytes(body)

    async def status(self, backend: Reachable, path: str) -> int:
        """The status of an answer to an empty request, which no route can take for a real one.

        Raises:
            httpx.HTTPError, httpx.InvalidURL: there was no answer.
        """
        url, headers = backend.url + path, _headers(backend)
        async with self._client_of(backend).stream(
            "POST", url, headers=headers, json={}, timeout=self._timeout
        ) as reply:
            return reply.status_code


def _headers(backend: Reachable) -> dict[str, str]:
    key = backend.api_key
    headers = {"accept-encoding": "identity"}
    return headers if key is None else headers | {"authorization": f"Bearer {key.decode()}"}
