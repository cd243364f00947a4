"""`gateway why`: where a request went, and for what reason, in plain words."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Annotated

import typer

from gateway.admin.views import RequestView
from gateway.cli.remote import AdminKey, AsJson, Remote, Url, percent, show_json
from gateway.records import NoToken

NO_TOKEN = {
    NoToken.BACKEND_ERROR: "no token came: the backend failed",
    NoToken.TIMEOUT: "no token came within the time limit",
    NoToken.GATEWAY_ERROR: "no token came: the gateway had no room for it, or failed",
    NoToken.REJECTED: "none, since the request was refused",
    NoToken.CLIENT_GONE: "no token came before the client left",
    NoToken.EMPTY: "none, since the answer was empty",
}


def why(
    request_id: Annotated[str, typer.Argument(help="From the reply's x-request-id header.")],
    url: Url = None,
    key: AdminKey = "",
    as_json: AsJson = False,
) -> None:
    """Explain why a request got its arm and backend, and where its time went.

    The last 10,000 requests are remembered; the access log holds all of them.

    Example: gateway why req_5f2c9a1e0b7d4c3a8e6f1b2d
    """
    answer = Remote(url, key).get("requests", request_id)
    if as_json:
        show_json(answer)
    else:
        for heading, sentence in explain(RequestView.model_validate(answer)):
            typer.echo(f"{heading + ':':<9}{sentence}")


def explain(request: RequestView) -> Iterator[tuple[str, str]]:
    """What happened, as headings and sentences."""
    yield "Request", _request(request)
    yield "Outcome", _outcome(request)
    if request.assigned_arm:
        yield "Session", _session(request)
        yield "Arm", _arm(request)
    yield "Backend", _backend(request)
    if request.stream:
        yield "TTFT", _ttft(request)
    done = request.marks.get("done_ms")
    if done is not None:
        yield "Total", f"{_time(done)} from the request's head to its end."
    if request.usage is not None:
        yield "Tokens", _tokens(request)


def _request(request: RequestView) -> str:
    at = datetime.fromtimestamp(request.at, UTC)
    key = f"key {request.key}" if request.key else "no known key"
    asked = request.requested_model
    alias = f" (asked for as {asked})" if asked and asked != request.model else ""
    kind = "streamed" if request.stream else "not streamed"
    return (
        f"{request.id}, {at:%Y-%m-%d %H:%M:%S} UTC, {key}: {request.path}, {kind}, "
        f"model {request.model}{alias}."
    )


def _outcome(request: RequestView) -> str:
    words = [f"{request.outcome.replace('_', ' ')}, HTTP {request.status}."]
    words += [text for text in (request.error, request.detail) if text]
    return " ".join(words)


def _session(request: RequestView) -> str:
    if request.session_source == "fingerprint":
        signal = (
            "no session signal came, so a fingerprint of the system text and the first user "
            "message stands for one"
        )
    else:
        signal = f"by {request.session_source or 'no signal'}"
    return f"{signal} (hash {request.session})." if request.session else f"{signal}."


def _arm(request: RequestView) -> str:
    if request.forced:
        reason = f"{request.assigned_arm}, which the client chose by hand: it is no evidence."
    else:
        reason = (
            f"the session's hash falls to {request.assigned_arm} by the weights of revision "
            f"{request.revision}: {_split(request.weights)}."
        )
    if request.arm and request.arm != request.assigned_arm:
        reason += (
            f" It went to arm {request.arm} instead, since nothing of {request.assigned_arm} "
            "could serve it; evidence still charges the arm it was assigned to."
        )
    return reason


def _split(weights: dict[str, float]) -> str:
    total = sum(weights.values()) or 1
    shares = (f"{arm} {weight:g} ({percent(weight / total)})" for arm, weight in weights.items())
    return ", ".join(shares)


def _backend(request: RequestView) -> str:
    if not request.backend:
        return "none was tried."
    chosen = f"{request.backend} of arm {request.arm}"
    if request.api != "other" and request.backend_api not in (request.api, ""):
        chosen += f", asked in the {request.backend_api} API since it has no {request.api}"
    if not request.tried:
        return f"{chosen}, the first one tried."
    before, last = request.tried[:-1], request.tried[-1]
    if last != request.backend or request.outcome == "ok":
        return f"{chosen}, after {', '.join(request.tried)} had failed."
    also = f" as {', '.join(before)} had before" if before else ""
    return f"{chosen}, which failed{also}."


def _ttft(request: RequestView) -> str:
    parts = request.ttft
    if parts is None:
        return f"{NO_TOKEN[request.no_token]}." if request.no_token else "not measured."
    gateway = "gateway, failed attempts included" if request.tried else "gateway"
    return (
        f"{_time(parts.total_ms)} = {_time(parts.queue_ms)} queue + {_time(parts.gateway_ms)} "
        f"{gateway} + {_time(parts.engine_ms)} engine."
    )


def _tokens(request: RequestView) -> str:
    usage = request.usage
    assert usage is not None
    if not usage.exact:
        return f"{usage.completion} relayed before the stream was cut."
    cached = f", {percent(usage.cached / usage.prompt)} of them cached" if usage.prompt else ""
    return f"{usage.prompt} of prompt{cached}; {usage.completion} generated."


def _time(milliseconds: float) -> str:
    if milliseconds >= 10_000:
        return f"{milliseconds / 1000:.4g} s"
    return f"{milliseconds:.3g} ms" if milliseconds < 100 else f"{milliseconds:.0f} ms"
