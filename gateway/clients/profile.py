"""What is known of one client: how it is recognised, spoken to and set up. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from gateway.clients import too_long
from gateway.clients.setup import MakeSetup
from gateway.errors import (
    BackendLimited,
    BackendMisconfigured,
    BadRequest,
    Forbidden,
    GatewayError,
    NotFound,
    RateLimited,
    TooLarge,
    Unauthorized,
)
from gateway.protocols import faults
from gateway.records import Api

Headers = Sequence[tuple[bytes, bytes]]

LONG_WAIT = 60.0
"""Seconds. Above, waiting is no answer to a refusal: the official SDKs do not wait longer either,
but try again at their own short intervals."""

CONTEXT = "context_length_exceeded"

_STOP: Headers = ((b"x-should-retry", b"false"),)
_NONE: Headers = ()

_POINTLESS = (Forbidden, NotFound, TooLarge)


@dataclass(frozen=True, slots=True)
class Profile:
    """One client. What it decides is pure; the edge and the exchange act on it.

    Attributes:
        name: as `gateway connect` takes it.
        title: as people know it.
        api: the API it speaks.
        path: what it adds to its base URL to ask for an answer.
        credential: the header its key comes in.
        user_agent: what it calls itself, version included, as measured.
        agents: beginnings of `user-agent` and `originator` that are this client's, in lower case.
        session_headers: name its conversation, in the order in which they count.
        early_ping: counts only events as signs of life, and bears one before the first.
        failures_in_stream: tries less often after a failed stream than after a status.
        obeys_should_retry: tries nothing again that came with `x-should-retry: false`.
        tries_around_its_sdk: its own tries multiply with those of the SDK within it.
        quota_code: the error code at which it gives up instead of trying again.
        waits_for_limits: sits out the wait that comes with a rate limit, but gives up at once at a
            server that is full.
        tries_rejections_again: all 4xx but 400.
        gives_up_at: the error as which it is told what no try of its own can change, where nothing
            else keeps it from trying.
        sits_out_limits: waits as long as it is told to, and shows its user how long that is.
        setup: what its user sets.
    """

    name: str
    title: str
    api: Api
    path: str
    setup: MakeSetup
    credential: Literal["authorization", "x-api-key"] = "authorization"
    user_agent: str = ""
    agents: tuple[bytes, ...] = ()
    session_headers: tuple[bytes, ...] = ()
    early_ping: bool = False
    failures_in_stream: bool = False
    obeys_should_retry: bool = False
    tries_around_its_sdk: bool = False
    quota_code: str | None = None
    waits_for_limits: bool = False
    tries_rejections_again: bool = False
    gives_up_at: type[GatewayError] | None = None
    sits_out_limits: bool = False

    def reword(self, api: Api, error: GatewayError) -> GatewayError:
        """The error in the status, code and words that make this client do the right thing.

        For the client only: the record keeps the original.

        Args:
            api: the dialect of the request.
        """
        if error.code == CONTEXT and api is Api.MESSAGES:
            return _like(error, BadRequest, message=too_long.in_anthropics_words(error.message))
        if self.waits_for_limits and isinstance(error, BackendLimited) and not _long(error):
            return _like(error, RateLimited, code=RateLimited.default_code)
        if self.quota_code and isinstance(error, RateLimited):
            return _like(error, RateLimited, code=self.quota_code) if _long(error) else error
        if self.tries_rejections_again and isinstance(error, _POINTLESS):
            return _like(error, BadRequest)
        if self.gives_up_at is None or (self.sits_out_limits and _long(error)):
            return error
        return _like(error, self.gives_up_at) if _hopeless(error) else error

    def in_stream(self, api: Api, error: GatewayError) -> bool:
        """Whether a streamed request whose head is still held is better told of `error` by a
        stream that fails than by a status."""
        if not self.failures_in_stream or api is not Api.RESPONSES:
            return False
        return error.status >= 500 or error.code == CONTEXT

    def error_headers(self, error: GatewayError) -> Headers:
        """What the head of an error reply carries besides `retry-after`."""
        if not self.obeys_should_retry:
            return _NONE
        pointless = isinstance(error, Unauthorized) or _hopeless(error)
        # Of a limit the SDK alone minds `retry-after`.
        multiplied = self.tries_around_its_sdk and error.status >= 500
        return _STOP if pointless or multiplied else _NONE

    def keepalive(self, api: Api, *, begun: bool) -> bytes:
        """A sign of life that resets this client's idle timer.

        Args:
            begun: whether an event of the answer has been sent.
        """
        return faults.keepalive(api, begun=begun or self.early_ping)


def _hopeless(error: GatewayError) -> bool:
    """Whether the same request can only fail again, whenever its client would send it."""
    return isinstance(error, BackendMisconfigured) or _long(error)


def _long(error: GatewayError) -> bool:
    """Whether it asks for a wait that no client should sit out."""
    return error.retry_after is not None and error.retry_after > LONG_WAIT


def _like(
    error: GatewayError,
    kind: type[GatewayError],
    *,
    message: str | None = None,
    code: str | None = None,
) -> GatewayError:
    return kind(
        error.message if message is None else message,
        param=error.param,
        code=code or error.code,
        detail=error.detail,
        retry_after=error.retry_after,
    )
