"""A base URL taken apart: where the gateway stands, and what clients were given beyond it.

A path such as `/api` belongs to where it stands: something before the gateway may serve it there,
and the gateway itself answers under it, too.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from ipaddress import ip_address
from urllib.parse import urlsplit

import typer

from gateway.settings import Settings

_ENDPOINT = re.compile(
    r"/(?:chat/completions|completions|messages|responses|models|embeddings)/*$", re.IGNORECASE
)
_PREFIX = re.compile(r"(?:/+v1(?=/|$))*/*$")
_PORTS = {"http": 80, "https": 443}


@dataclass(frozen=True, slots=True)
class Address:
    """A base URL. Credentials within it are left out.

    Attributes:
        root: scheme, host, port, and the path the gateway stands under; no slash at the end.
        prefix: what follows the root and says `/v1`, once or more often.
        endpoint: the route of one API that was taken for part of the base, else empty.
    """

    scheme: str
    host: str
    port: int
    root: str
    prefix: str
    endpoint: str

    @property
    def openai(self) -> str:
        """The base URL OpenAI SDKs and Codex want."""
        return f"{self.root}/v1"

    @property
    def versions(self) -> int:
        """How often it says `/v1`."""
        return self.prefix.count("/v1")

    @property
    def given(self) -> str:
        return f"{self.root}{self.prefix}{self.endpoint}"

    @property
    def loopback(self) -> bool:
        try:
            return ip_address(self.host).is_loopback
        except ValueError:
            return self.host == "localhost"

    @property
    def origin(self) -> str:
        parts = urlsplit(self.root)
        return f"{parts.scheme}://{parts.netloc}"

    def other_scheme(self) -> str:
        """The root with https for http, or the other way round."""
        scheme = {"http": "https", "https": "http"}[self.scheme]
        return scheme + self.root.removeprefix(self.scheme)

    def same_server(self, other: Address) -> bool:
        """Whether both name one server; two loopback names are the same machine."""
        same_host = self.host == other.host or (self.loopback and other.loopback)
        return same_host and self.port == other.port


def parse(url: str) -> Address:
    """Raises:
    ValueError: it is no http(s)://HOST[:PORT][/PATH].
    """
    parts = urlsplit(url.strip())
    scheme = parts.scheme.lower()
    if scheme not in _PORTS or not parts.hostname or any(c.isspace() for c in parts.netloc):
        raise ValueError("no http(s)://HOST:PORT")
    # 0 is a port of the system's choice, and not the scheme's own.
    port = _PORTS[scheme] if parts.port is None else parts.port
    endpoint = _ENDPOINT.search(parts.path)
    path = parts.path[: endpoint.start()] if endpoint else parts.path
    found = _PREFIX.search(path)
    assert found is not None, "it matches nothing at the end, too"
    authority = parts.netloc.rpartition("@")[2]
    return Address(
        scheme=scheme,
        host=parts.hostname,
        port=port,
        root=f"{scheme}://{authority}{path[: found.start()]}",
        prefix=found[0].rstrip("/"),
        endpoint=endpoint[0].rstrip("/") if endpoint else "",
    )


def option(url: str) -> Address:
    """The address that an option `--url` gives; it is not repeated, for it may hold a password.

    Raises:
        typer.BadParameter: it is none.
    """
    try:
        return parse(url)
    except ValueError:
        raise typer.BadParameter(
            "is no http(s)://HOST:PORT, such as http://127.0.0.1:8080", param_hint="--url"
        ) from None


def url_of(host: str, port: int) -> str:
    """The URL of what listens there."""
    return f"http://{f'[{host}]' if ':' in host else host}:{port}"


def configured(settings: Settings) -> str:
    """Where a configuration has the gateway listen, as seen from this machine."""
    server = settings.server
    host = "127.0.0.1" if server.host in ("0.0.0.0", "::") else server.host
    return url_of(host, server.port)
