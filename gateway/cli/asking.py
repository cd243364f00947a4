"""How a server is asked, and what may come of it.

Neither a proxy of the environment nor a .netrc has a say in who gets a key.
"""

from __future__ import annotations

import json
import socket
import ssl
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from enum import Enum, auto
from typing import Any

import httpx

LONGEST_REPLY = 2**20
"""Bytes of a reply that are read; a model list or a metrics page is shorter."""


class Kind(Enum):
    """Ways of not answering."""

    REFUSED = auto()
    UNRESOLVED = auto()
    UNREACHABLE = auto()
    NO_CONNECTION = auto()
    SILENT = auto()
    NO_TLS = auto()
    CERTIFICATE = auto()
    NO_HTTP = auto()


@dataclass(frozen=True, slots=True)
class Unanswered:
    """No reply came; `detail` is what the system said."""

    kind: Kind
    detail: str


@dataclass(frozen=True, slots=True)
class Reply:
    """What came back, at most `LONGEST_REPLY` bytes of it."""

    status: int
    headers: Mapping[str, str]
    body: bytes

    @property
    def ok(self) -> bool:
        return 200 <= self.status < 300

    @property
    def text(self) -> str:
        return self.body.decode(errors="replace")

    def json(self) -> Any:
        """The decoded body; None if it is no JSON."""
        try:
            return json.loads(self.body)
        except (ValueError, RecursionError):
            return None

    def member(self, *names: str) -> Any:
        """A value inside a JSON object; None if there is none."""
        value = self.json()
        for name in names:
            value = value.get(name) if isinstance(value, dict) else None
        return value


def client(url: str, timeout: float, proxy: str | None = None) -> httpx.Client:
    """A client for requests to `url`, directly or through `proxy`; redirects are not followed.

    It trusts the system's certificate authorities, or those of SSL_CERT_FILE.

    Args:
        timeout: seconds for each step of a request.
        proxy: the address of an HTTP proxy.
    """
    return httpx.Client(
        timeout=timeout,
        trust_env=False,
        # TLS to a proxy is checked like TLS to the server behind it.
        verify=trust(url, proxy or ""),
        proxy=proxy,
        headers={"accept-encoding": "identity"},
    )


def trust(*urls: str) -> ssl.SSLContext | bool:
    """What certificates are checked against; loading authorities takes a while, so only for TLS."""
    return ssl.create_default_context() if any(u.startswith("https:") for u in urls) else False


class Asker:
    """Sends single requests, each on a connection of its own.

    Args:
        timeout: seconds for each step of a request, and for all of it unless told otherwise.
    """

    def __init__(self, timeout: float, clock: Callable[[], float] = time.monotonic) -> None:
        self.timeout = timeout
        self._clock = clock

    def __call__(
        self,
        url: str,
        *,
        key: str = "",
        headers: Mapping[str, str] | None = None,
        content: bytes | None = None,
        proxy: str | None = None,
        timeout: float | None = None,
    ) -> Reply | Unanswered:
        """GET, or POST where there is content. `key` goes out as a Bearer token."""
        limit = timeout or self.timeout
        sent = dict(headers or {})
        if key:
            sent["authorization"] = f"Bearer {key}"
        if content is not None:
            sent["content-type"] = "application/json"
        method = "GET" if content is None else "POST"
        until = self._clock() + limit
        try:
            with (
                client(url, limit, proxy) as http,
                http.stream(method, url, headers=sent, content=content) as reply,
            ):
                return read(reply, until, self._clock)
        except (httpx.HTTPError, httpx.InvalidURL) as error:
            return unanswered(error)


def read(reply: httpx.Response, until: float, clock: Callable[[], float]) -> Reply:
    """The whole reply, up to the longest there may be; a server that drips does not hold us up.

    Raises:
        httpx.HTTPError: it broke off, or had not ended by `until`.
    """
    body = bytearray()
    for chunk in reply.iter_raw():
        body += chunk
        if len(body) >= LONGEST_REPLY:
            break
        if clock() > until:
            raise httpx.ReadTimeout("the reply did not end in time")
    return Reply(reply.status_code, reply.headers, bytes(body[:LONGEST_REPLY]))


def unanswered(error: httpx.HTTPError | httpx.InvalidURL) -> Unanswered:
    """What an exception of httpx says of the server."""
    detail = str(error) or type(error).__name__
    if isinstance(error, httpx.InvalidURL):
        return Unanswered(Kind.UNREACHABLE, f"no address: {detail}")
    for cause in _causes(error):
        if isinstance(cause, ssl.SSLCertVerificationError):
            return Unanswered(Kind.CERTIFICATE, cause.verify_message)
        if isinstance(cause, ssl.SSLError):
            return Unanswered(Kind.NO_TLS, cause.reason or detail)
        if isinstance(cause, socket.gaierror):
            return Unanswered(Kind.UNRESOLVED, cause.strerror or detail)
        if isinstance(cause, ConnectionRefusedError):
            return Unanswered(Kind.REFUSED, "connection refused")
        if isinstance(cause, ConnectionResetError):
            return Unanswered(Kind.NO_HTTP, "connection reset")
    if isinstance(error, httpx.ConnectTimeout | httpx.PoolTimeout):
        return Unanswered(Kind.NO_CONNECTION, detail)
    if isinstance(error, httpx.TimeoutException):
        return Unanswered(Kind.SILENT, detail)
    if isinstance(error, httpx.ConnectError):
        return Unanswered(Kind.UNREACHABLE, detail)
    return Unanswered(Kind.NO_HTTP, detail)


def _causes(error: BaseException) -> Iterator[BaseException]:
    """An error and those it came from; several addresses of a name give a group of them."""
    seen: BaseException | None = error
    while seen is not None:
        yield seen
        if isinstance(seen, BaseExceptionGroup):
            for each in seen.exceptions:
                yield from _causes(each)
        seen = seen.__cause__ or seen.__context__
