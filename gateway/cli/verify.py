"""Does it work? One request as the client would send it, and in one sentence what came of it."""

from __future__ import annotations

import ssl
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit
from urllib.request import getproxies_environment, proxy_bypass

import httpx
import msgspec

from gateway.cli.remote import trust
from gateway.clients.profile import Profile
from gateway.clients.setup import Target
from gateway.clients.trial import Trial, trial
from gateway.protocols.faults import reworded
from gateway.protocols.sse import Reader
from gateway.protocols.tokens import Observer
from gateway.records import Api

PATIENCE = 60.0
"""Seconds without a byte."""

LONGEST = 500
"""Characters of another's message that are repeated."""

REQUEST_ID = "x-request-id"

KEY_UNKNOWN = (
    "The gateway does not know this key, {length} characters long: copy one whole from `keys` of "
    "its configuration, without quotes or blanks, and set GATEWAY_KEY to it."
)
NOT_US = (
    "What answers at {url} is no TTFT Gateway (HTTP {status}, {kind}): give the gateway's own "
    "address with --url."
)
NOTHING_LISTENS = (
    "Nothing answers at {root}: start it with gateway serve, or give its address with --url."
)
NO_CERTIFICATE = (
    "The certificate of {root} is not trusted here: set SSL_CERT_FILE to the authority's file "
    "(NODE_EXTRA_CA_CERTS for clients that run on Node)."
)
SILENT = "{root} did not answer within {seconds:g} s; gateway doctor looks for the reason."
PROXY_FAILED = (
    "The proxy that {variables} names failed: add {host} to NO_PROXY, or leave out --use-proxy."
)
PROXY_SET = "A client that heeds {variables} would go through a proxy: add {host} to NO_PROXY."
PAST_US = (
    "The answer lacks the gateway's request id: {root} may be the engine itself, and then nothing "
    "is measured or limited."
)


class Verdict(msgspec.Struct, frozen=True):
    """What came of the request.

    Attributes:
        sentence: that it works, or what is wrong and what mends it.
        status: of the reply, None where there was none.
        ttft_ms: from sending to the first token.
        arm: who answered, where this key may know it.
        remark: what will bite later although it works.
    """

    ok: bool
    sentence: str
    status: int | None = None
    ttft_ms: float | None = None
    arm: str | None = None
    remark: str | None = None


@dataclass(frozen=True, slots=True)
class _Stream:
    """What an event stream brought: the first token's delay in seconds, and an error's message."""

    first_token: float | None
    error: str | None


def verify(
    profile: Profile,
    target: Target,
    *,
    use_proxy: bool,
    clock: Callable[[], float] = time.monotonic,
) -> Verdict:
    """Send a request as `profile`'s client would, and judge the answer. The key is not repeated.

    Args:
        use_proxy: go through the proxies of the environment.
    """
    request = trial(profile, target)
    sent = clock()
    try:
        with (
            httpx.Client(
                trust_env=use_proxy, verify=trust(request.url), timeout=PATIENCE
            ) as client,
            client.stream("POST", request.url, headers=request.headers, json=request.body) as reply,
        ):
            if reply.status_code != 200 or not _streams(reply):
                reply.read()
                return Verdict(False, _refused(reply, target, request), reply.status_code)
            stream = _read(profile.api, reply.iter_raw(), lambda: clock() - sent)
            return _judged(profile, target, reply, stream, use_proxy)
    except (httpx.HTTPError, httpx.InvalidURL) as error:
        return Verdict(False, _no_answer(error, target, use_proxy))


def _streams(reply: httpx.Response) -> bool:
    kind: str = reply.headers.get("content-type", "")
    return kind.startswith("text/event-stream")


def _read(api: Api, chunks: Iterator[bytes], passed: Callable[[], float]) -> _Stream:
    first = None
    reader, observer = Reader(), Observer(api)
    for chunk in chunks:
        for event in reader.feed(chunk):
            seen = observer.feed(event)
            if seen.error:
                return _Stream(first, reworded(api, 200, event.data).error.message)
            if seen.token and first is None:
                first = passed()
    return _Stream(first, None)


def _judged(
    profile: Profile, target: Target, reply: httpx.Response, stream: _Stream, use_proxy: bool
) -> Verdict:
    arm = reply.headers.get("x-gateway-arm")
    if stream.error is not None:
        what = "Refused" if stream.first_token is None else "The answer broke off"
        return Verdict(False, f"{what}: {stream.error}", 200, arm=arm)
    if stream.first_token is None:
        sentence = (
            f"The stream ended without a word: ask model {target.model}'s server directly whether "
            "it answers, and see gateway why with the request's id."
        )
        return Verdict(False, sentence, 200, arm=arm)
    milliseconds = round(stream.first_token * 1000, 1)
    who = f" from arm {arm}" if arm else ""
    return Verdict(
        True,
        f"It works: {profile.title} gets answers of model {target.model}{who}.",
        200,
        milliseconds,
        arm,
        _remark(target, reply, use_proxy),
    )


def _refused(reply: httpx.Response, target: Target, request: Trial) -> str:
    """What a reply that is no stream means."""
    status, said = reply.status_code, _message(reply.content)
    ours = REQUEST_ID in reply.headers
    if not said or (status == 404 and not ours):
        kind = reply.headers.get("content-type", "no content type")
        return NOT_US.format(url=request.url, status=status, kind=kind)
    if status == 401 and ours:
        return KEY_UNKNOWN.format(length=len(target.key or ""))
    return f"Refused with HTTP {status}: {said}"


def _message(body: bytes) -> str:
    """What an error body in any API's shape says, or nothing."""
    try:
        content: Any = msgspec.json.decode(body)
    except (msgspec.DecodeError, RecursionError):
        return ""
    error = content.get("error") if isinstance(content, dict) else None
    said = error.get("message") if isinstance(error, dict) else error
    return said[:LONGEST] if isinstance(said, str) else ""


def _no_answer(error: Exception, target: Target, use_proxy: bool) -> str:
    if use_proxy and (variables := _proxies(target)):
        return PROXY_FAILED.format(variables=variables, host=_host(target))
    if isinstance(error.__cause__, ssl.SSLCertVerificationError) or "CERTIFICATE" in str(error):
        return NO_CERTIFICATE.format(root=target.root)
    if isinstance(error, httpx.ConnectError):
        return NOTHING_LISTENS.format(root=target.root)
    if isinstance(error, httpx.TimeoutException):
        return SILENT.format(root=target.root, seconds=PATIENCE)
    return f"{target.root} does not speak HTTP as expected: {str(error)[:LONGEST]}."


def _remark(target: Target, reply: httpx.Response, use_proxy: bool) -> str | None:
    if REQUEST_ID not in reply.headers:
        return PAST_US.format(root=target.root)
    variables = "" if use_proxy else _proxies(target)
    return PROXY_SET.format(variables=variables, host=_host(target)) if variables else None


def _proxies(target: Target) -> str:
    """The variables that would send this address through a proxy."""
    scheme = urlsplit(target.root).scheme
    proxies = getproxies_environment()
    if proxy_bypass(_host(target)):
        return ""
    kinds = [kind for kind in (scheme, "all") if kind in proxies]
    return " and ".join(f"{kind.upper()}_PROXY" for kind in kinds)


def _host(target: Target) -> str:
    return urlsplit(target.root).hostname or ""
