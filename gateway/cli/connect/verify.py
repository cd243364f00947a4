"""Does it work? One request as the client would send it, and in one sentence what came of it."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

import httpx
import msgspec

from gateway.cli.address import parse
from gateway.cli.answering import has_gateways_id, stands_at
from gateway.cli.asking import Asker, Kind, Reply, Unanswered, client, read, unanswered
from gateway.cli.masking import Mask
from gateway.cli.proxies import Proxy, applying, exemption
from gateway.clients.profile import Profile
from gateway.clients.setup import Target
from gateway.clients.trial import trial
from gateway.protocols.faults import reworded
from gateway.protocols.sse import Reader
from gateway.protocols.tokens import Observer
from gateway.records import Api

PATIENCE = 60.0
"""Seconds without a byte."""

LONGEST = 500
"""Characters of another's message that are repeated."""

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
NO_HTTP = "{root} does not speak HTTP as expected: {detail}."
PROXY_FAILED = "The proxy that {variable} names failed: {fix}, or leave out --use-proxy."
PROXY_UNTRIED = (
    "The proxy that {variable} names is no HTTP proxy and cannot be tried: {fix}, or leave out "
    "--use-proxy."
)
PROXY_SET = "A client that heeds {variable} would go through a proxy: {fix}"
PAST_US = (
    "No gateway answers at {root}: that may be the engine itself, and then nothing is measured or "
    "limited."
)

_NO_ANSWER = {
    Kind.REFUSED: NOTHING_LISTENS,
    Kind.UNRESOLVED: NOTHING_LISTENS,
    Kind.UNREACHABLE: NOTHING_LISTENS,
    Kind.NO_CONNECTION: SILENT,
    Kind.SILENT: SILENT,
    Kind.CERTIFICATE: NO_CERTIFICATE,
    Kind.NO_TLS: NO_HTTP,
    Kind.NO_HTTP: NO_HTTP,
}


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
class _Way:
    """How the gateway is reached.

    Attributes:
        proxy: the one a client would use, used here only if `through` is set.
        fix: the line that keeps clients from using it.
    """

    root: str
    proxy: Proxy | None
    through: bool
    fix: str

    @property
    def url(self) -> str | None:
        """The address of the proxy that is used."""
        return self.proxy.url if self.proxy and self.through else None

    def ours(self, headers: Mapping[str, str]) -> bool:
        """Whether a reply with these headers is a gateway's own."""
        ask = Asker(PATIENCE)
        return has_gateways_id(headers) and stands_at(
            self.root, lambda url: ask(url, proxy=self.url)
        )


@dataclass(frozen=True, slots=True)
class _Stream:
    """What an event stream brought: the first token's delay in seconds, and an error's message."""

    first_token: float | None
    error: str | None


def verify(
    profile: Profile,
    target: Target,
    *,
    env: Mapping[str, str],
    use_proxy: bool,
    clock: Callable[[], float] = time.monotonic,
) -> Verdict:
    """Send a request as `profile`'s client would, and judge the answer. The key is not repeated.

    Args:
        env: where a client's proxies are named.
        use_proxy: go through them.
    """
    address = parse(target.root)
    way = _Way(target.root, applying(address, env), use_proxy, exemption(address, env))
    verdict = _tried(profile, target, way, clock)
    hide = Mask((target.key or "",)).hide
    return msgspec.structs.replace(verdict, sentence=hide(verdict.sentence))


def _tried(profile: Profile, target: Target, way: _Way, clock: Callable[[], float]) -> Verdict:
    if way.proxy and way.through and not way.proxy.speaks_http:
        return Verdict(False, PROXY_UNTRIED.format(variable=way.proxy.variable, fix=way.fix))
    request = trial(profile, target)
    sent = clock()
    try:
        with (
            client(request.url, PATIENCE, way.url) as http,
            http.stream("POST", request.url, headers=request.headers, json=request.body) as reply,
        ):
            if reply.status_code != 200 or not _streams(reply):
                refusal = read(reply, sent + PATIENCE, clock)
                return Verdict(False, _refused(refusal, request.url, target, way), refusal.status)
            stream = _read(profile.api, reply.iter_raw(), lambda: clock() - sent)
    except (httpx.HTTPError, httpx.InvalidURL) as error:
        return Verdict(False, _no_answer(unanswered(error), way))
    return _judged(profile, target, reply.headers, stream, way)


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
                return _Stream(first, _told(api, event.data))
            if seen.token and first is None:
                first = passed()
    return _Stream(first, None)


def _told(api: Api, data: bytes) -> str:
    """What an error event says: the gateway's own words where they have its form."""
    try:
        event = msgspec.json.decode(data)
    except (msgspec.DecodeError, RecursionError):
        event = None
    inner = event.get("response", event) if isinstance(event, dict) else None
    error = inner.get("error") if isinstance(inner, dict) else None
    said = error.get("message") if isinstance(error, dict) else None
    if isinstance(said, str) and said:
        return said[:LONGEST]
    return reworded(api, 200, data).error.message


def _judged(
    profile: Profile, target: Target, headers: Mapping[str, str], stream: _Stream, way: _Way
) -> Verdict:
    arm = headers.get("x-gateway-arm")
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
    sentence = f"It works: {profile.title} gets answers of model {target.model}{who}."
    return Verdict(True, sentence, 200, milliseconds, arm, _remark(headers, way))


def _refused(reply: Reply, url: str, target: Target, way: _Way) -> str:
    """What a reply that is no stream means."""
    said = _message(reply)
    ours = bool(said) and way.ours(reply.headers)
    if not said or (reply.status == 404 and not ours):
        kind = reply.headers.get("content-type", "no content type")
        return NOT_US.format(url=url, status=reply.status, kind=kind)
    if reply.status == 401 and ours:
        return KEY_UNKNOWN.format(length=len(target.key or ""))
    return f"Refused with HTTP {reply.status}: {said}"


def _message(reply: Reply) -> str:
    """What an error body in any API's shape says, or nothing."""
    error = reply.member("error")
    said = error.get("message") if isinstance(error, dict) else error
    return said[:LONGEST] if isinstance(said, str) else ""


def _no_answer(what: Unanswered, way: _Way) -> str:
    if way.proxy and way.through:
        return PROXY_FAILED.format(variable=way.proxy.variable, fix=way.fix)
    detail = what.detail[:LONGEST]
    return _NO_ANSWER[what.kind].format(root=way.root, seconds=PATIENCE, detail=detail)


def _remark(headers: Mapping[str, str], way: _Way) -> str | None:
    if not way.ours(headers):
        return PAST_US.format(root=way.root)
    if way.proxy is None or way.through:
        return None
    return PROXY_SET.format(variable=way.proxy.variable, fix=way.fix)
