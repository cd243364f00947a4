"""The connections to one backend: the last one returned is the first one taken.

There is no limit on open connections here: how many requests may be with a backend at once is
admission's business, and a second limit would only hide the first one.
"""

from __future__ import annotations

import asyncio
import ssl
from urllib.parse import urlsplit

from pydantic import SecretStr

from gateway.errors import BackendFailed
from gateway.upstream import tunnel
from gateway.upstream.connection import Connection
from gateway.upstream.proxy import Proxy

UNREACHABLE = "The model's server cannot be reached right now; try again in a moment."


class Pool:
    """Opens connections to one origin and keeps the idle ones for the next request.

    Args:
        url: `http://host:port/prefix` or `https://…` of the backend.
        connect_timeout: seconds for TCP and TLS together, and for a proxy's tunnel.
        proxy: `http://[user:password@]host[:port]`, which carries everything: https through a
            tunnel, http in the form proxies forward.
        max_idle: idle connections kept; more are closed.
        max_header_bytes: longest reply head accepted.

    Attributes:
        target: what a request's target begins with, before the path of the API.
        host_lines: the lines of a request's head that say where it goes.
    """

    def __init__(
        self,
        url: str,
        *,
        connect_timeout: float,
        proxy: SecretStr | None = None,
        max_idle: int = 256,
        max_header_bytes: int = 65536,
    ) -> None:
        parts = urlsplit(url)
        secure = parts.scheme == "https"
        self._host = parts.hostname or ""
        self._port = parts.port or (443 if secure else 80)
        self._tls = ssl.create_default_context() if secure else None
        self._proxy = Proxy.of(proxy.get_secret_value()) if proxy else None
        self.target = parts.path.rstrip("/").encode()
        self.host_lines = b"host: %b\r\n" % parts.netloc.encode()
        if self._proxy is not None and not secure:
            self.target = b"http://%b%b" % (parts.netloc.encode(), self.target)
            self.host_lines += self._proxy.authorization
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
        by = f" by {self._proxy}" if self._proxy else ""
        try:
            async with asyncio.timeout(self.connect_timeout):
                connection = await self._open()
        except TimeoutError:
            detail = f"no connection{by} within {self.connect_timeout:g} s"
            raise BackendFailed(UNREACHABLE, detail=detail) from None
        except OSError as error:
            why = str(error) or type(error).__name__  # TLS that is cut says nothing
            raise BackendFailed(UNREACHABLE, detail=f"cannot connect{by}: {why}") from error
        self.opened += 1
        return connection

    async def _open(self) -> Connection:
        loop = asyncio.get_running_loop()
        host, port, proxy = self._host, self._port, self._proxy
        if proxy is not None:
            if self._tls is not None:
                return await tunnel.connect(proxy, host, port, self._tls, self._new)
            host, port = proxy.host, proxy.port
        _, connection = await loop.create_connection(self._new, host, port, ssl=self._tls)
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
