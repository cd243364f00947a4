"""The forward proxy a backend is reached by, where its settings name one."""

from __future__ import annotations

from base64 import b64encode
from dataclasses import dataclass, field
from typing import Self
from urllib.parse import unquote, urlsplit


@dataclass(frozen=True, slots=True)
class Proxy:
    """An HTTP proxy.

    Attributes:
        authorization: the line of a request head that opens it; empty where it wants none.
    """

    host: str
    port: int
    authorization: bytes = field(repr=False)

    @classmethod
    def of(cls, url: str) -> Self:
        """From `http://[user:password@]host[:port]`, as the settings have it."""
        parts = urlsplit(url)
        line = b""
        if parts.username is not None:
            pair = f"{unquote(parts.username)}:{unquote(parts.password or '')}"
            line = b"proxy-authorization: Basic %b\r\n" % b64encode(pair.encode())
        return cls(parts.hostname or "", parts.port or 80, line)

    def __str__(self) -> str:
        """For logs: never with credentials."""
        return f"proxy {authority(self.host, self.port)}"


def authority(host: str, port: int) -> str:
    """Host and port as a URL has them."""
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
