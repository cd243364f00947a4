"""Questions to an engine over HTTP: bounded in time and length, by no proxy of the environment."""

from __future__ import annotations

import ssl
from typing import Protocol

import httpx

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


class EngineHttp:
    """Asks engines, one connection a question.

    Args:
        timeout: seconds for each step of a question; the caller bounds the whole.
        transport: for tests; the network by default.
    """

    def __init__(
        self, timeout: float = 5.0, transport: httpx.AsyncBaseTransport | None = None
    ) -> None:
        self._client = httpx.AsyncClient(
            timeout=timeout,
            trust_env=False,
            # The authorities that requests to backends trust, too.
            verify=ssl.create_default_context(),
            limits=httpx.Limits(max_connections=None, max_keepalive_connections=0),
            transport=transport,
        )

    async def get(
        self, backend: Reachable, path: str, longest: int = LONGEST_ANSWER
    ) -> bytes | None:
        """The body of the answer, whatever its status below 500; None for one that is too long.

        Raises:
            httpx.HTTPError, httpx.InvalidURL: there was no answer, or the server failed.
        """
        body = bytearray()
        async with self._client.stream(
            "GET", backend.url + path, headers=_headers(backend)
        ) as reply:
            if reply.is_server_error:
                reply.raise_for_status()
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
        async with self._client.stream(
            "POST", backend.url + path, headers=_headers(backend), json={}
        ) as reply:
            return reply.status_code

    async def aclose(self) -> None:
        await self._client.aclose()


def _headers(backend: Reachable) -> dict[str, str]:
    key = backend.api_key
    return {} if key is None else {"authorization": f"Bearer {key.decode()}"}
