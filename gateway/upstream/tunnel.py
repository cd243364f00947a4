"""A TLS connection to a backend through a proxy: CONNECT, then the handshake inside."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Callable
from contextlib import suppress
from typing import TypeVar, cast

from gateway.errors import BackendFailed
from gateway.upstream.proxy import Proxy, authority

PROXY_FAILED = "The model's server cannot be reached right now; try again in a moment."
LONGEST_HEAD = 16384

P = TypeVar("P", bound=asyncio.Protocol)


async def connect(
    proxy: Proxy, host: str, port: int, tls: ssl.SSLContext, new: Callable[[], P]
) -> P:
    """The protocol that `new` makes, connected to the backend; the caller bounds the time.

    Raises:
        BackendFailed: the proxy refused, or spoke no HTTP.
        OSError: the proxy cannot be reached, or TLS with the backend failed.
    """
    loop = asyncio.get_running_loop()
    transport, opening = await loop.create_connection(_Opening, proxy.host, proxy.port)
    try:
        target = authority(host, port).encode()
        transport.write(
            b"CONNECT %b HTTP/1.1\r\nhost: %b\r\n%b\r\n" % (target, target, proxy.authorization)
        )
        _accept(proxy, await opening.head)
        protocol = new()
        secured = await loop.start_tls(transport, protocol, tls, server_hostname=host)
    except BaseException:
        # Also when who asked for it leaves: no one else knows of this connection yet.
        transport.abort()
        raise
    if secured is None:  # asyncio says so where the connection is lost meanwhile
        raise ConnectionResetError(f"{proxy} closed the tunnel")
    protocol.connection_made(secured)
    return protocol


def _accept(proxy: Proxy, head: bytes) -> None:
    """Raises BackendFailed unless the proxy agreed."""
    version, _, rest = head.partition(b"\r\n")[0].partition(b" ")
    if not version.startswith(b"HTTP/1."):
        raise BackendFailed(PROXY_FAILED, detail=f"{proxy} speaks no HTTP")
    if rest[:1] != b"2":
        said = rest[:100].decode("latin-1")
        raise BackendFailed(PROXY_FAILED, detail=f"{proxy} refused the tunnel: HTTP {said}")


class _Opening(asyncio.Protocol):
    """Reads the head of the proxy's answer; before TLS begins the backend says nothing."""

    def __init__(self) -> None:
        self.head: asyncio.Future[bytes] = asyncio.get_running_loop().create_future()
        self._read = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)

    def data_received(self, data: bytes) -> None:
        self._read += data
        if b"\r\n\r\n" in self._read:
            with suppress(asyncio.InvalidStateError):
                self.head.set_result(self._read)
        elif len(self._read) > LONGEST_HEAD:
            self._transport.abort()

    def connection_lost(self, exc: Exception | None) -> None:
        if not self.head.done():
            self.head.set_exception(ConnectionResetError("it closed the connection"))
