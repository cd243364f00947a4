"""The connections to one backend: the last one returned is the first one taken.

There is no limit on open connections here: how many requests may be with a backend at once is
admission's business, and a second limit would only hide the first one.
"""

from __future__ import annotations

import asyncio
import ssl
from urllib.parse import urlsplit

from gateway.errors import BackendFailed
from gateway.upstream.connection import Connection

UNREACHABLE = "The model's server cannot be reached right now; try again in a moment."


class Pool:
    """Opens connections to one origin and keeps the idle ones for the next request.

    Args:
        url: `http://host:port/prefix` or `https://…` of the backend.
        connect_timeout: seconds for TCP and TLS together.
        max_idle: idle connections kept; more are closed.
        max_header_bytes: longest reply head accepted.
    """

    def __init__(
        self,
        url: str,
        *,
        connect_timeout: float,
        max_idle: int = 256,
        max_header_bytes: int = 65536,
    ) -> None:
        parts = urlsplit(url)
        self.secure = parts.scheme == "https"
        self.host = parts.hostname or ""
        self.port = parts.port or (443 if self.secure else 80)
        self.prefix = parts.path.rstrip("/").encode()
        self.authority = parts.netloc.encode()
        self._tls = ssl.create_default_context() if self.secure else None
        self.connect_timeout = connect_timeout
        self._max_idle = max_idle
        self._max_header_bytes = max_header_bytes
        # A dict is an ordered set: O(1) to take the newest and to drop one that was closed.
        self._idle: dict[Connection, None] = {}
        self._closed = False
        self.opened = 0

    @property
    def idle(self) -> int:
        return len(self._idle)

    def take(self) -> Connection | None:
        """The most recently used idle connection, or None."""
        while self._idle:
            connection, _ = self._idle.popitem()
            if connection.is_usable():
                return connection
        return None

    async def connect(self) -> Connection:
        """Open a fresh connection.

        Raises:
            BackendFailed: refused, unreachable, TLS failed, or not there in `connect_timeout`.
        """
        loop = asyncio.get_running_loop()
        try:
            async with asyncio.timeout(self.connect_timeout):
                _, connection = await loop.create_connection(
                    self._new, self.host, self.port, ssl=self._tls
                )
        except TimeoutError:
            detail = f"no connection within {self.connect_timeout:g} s"
            raise BackendFailed(UNREACHABLE, detail=detail) from None
        except OSError as error:
            raise BackendFailed(UNREACHABLE, detail=f"cannot connect: {error}") from error
        self.opened += 1
        return connection

    def close(self) -> None:
        """Close the idle connections; the busy ones close when their exchange ends."""
        self._closed = True
        for connection in list(self._idle):
            connection.abort()
        self._idle.clear()

    def _new(self) -> Connection:
        return Connection(self._put_back, self._drop, self._max_header_bytes)

    def _put_back(self, connection: Connection) -> None:
        if self._closed or len(self._idle) >= self._max_idle:
            connection.abort()
        else:
            self._idle[connection] = None

    def _drop(self, connection: Connection) -> None:
        self._idle.pop(connection, None)
