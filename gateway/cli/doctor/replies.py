"""KeyError: 'choices', "reading 'choices'": an error that was read as an answer.

The request is sent unstreamed, since a stream hides what the server said, and the raw reply shown.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

import msgspec

from gateway.cli.asking import Kind, Reply, Unanswered
from gateway.cli.doctor.case import Case, Cause
from gateway.cli.doctor.finding import Finding, Severity, Topic
from gateway.cli.key_form import sendable
from gateway.protocols.splice import set_fields

TOPIC = Topic("reply")

SHOWN = 600
"""Characters of a raw reply that are printed."""

_ANSWERS = {
    "/v1/chat/completions": "choices",
    "/v1/completions": "choices",
    "/v1/messages": "content",
    "/v1/responses": "output",
}


@dataclass(frozen=True, slots=True)
class Sent:
    """A request to repeat, unstreamed: its route and the bytes of its body."""

    path: str
    body: bytes

    @property
    def member(self) -> str:
        """What an answer to it has, and an error has not."""
        return _ANSWERS[self.path]


def check(case: Case) -> Iterator[Finding]:
    """Send one small request, or the one of `--request`, and read the reply as a client does."""
    key, _ = case.key
    if not sendable(key):
        yield TOPIC.warning(
            f"Not tried: {'the key cannot be sent' if key else 'there is no key to send'}.",
            "A request without a good key only ever gets 401.",
            "gateway doctor --only credentials",
        )
        return
    try:
        sent = _own(case) if case.request is None else _of_file(case)
    except ValueError as error:
        yield TOPIC.error(
            f"{case.request} is no request: {error}.",
            "The server refuses it before any model sees it, and clients that do not look at "
            "the status take the refusal for an answer.",
            f"python3 -m json.tool {case.request}",
        )
        return
    reply = case.ask(
        f"{case.address.root}{sent.path}",
        key=key,
        content=sent.body,
        headers={"anthropic-version": "2023-06-01"} if sent.member == "content" else None,
        timeout=case.patience,
    )
    if isinstance(reply, Unanswered):
        yield _no_reply(case, reply)
    else:
        finding = _read(case, sent, reply)
        told = _CAUSES.get(reply.status) in case.causes
        yield replace(finding, severity=Severity.WARNING) if told else finding


def _own(case: Case) -> Sent:
    """One token of chat, as little as an engine can be asked for."""
    message = {"role": "user", "content": "Say OK."}
    body = {"model": case.model or "unknown", "messages": [message], "max_tokens": 1}
    return Sent("/v1/chat/completions", json.dumps(body).encode())


def _of_file(case: Case) -> Sent:
    """The user's own body, unstreamed and else as it is.

    Raises:
        ValueError: it cannot be read, or is no JSON object.
    """
    assert case.request is not None
    try:
        body = case.request.read_bytes()
        fields = json.loads(body)
        if not isinstance(fields, dict):
            raise ValueError("it is JSON, but no object")
        # Engines refuse stream_options where nothing is streamed.
        changes: dict[str, bytes | None] = {"stream": b"false", "stream_options": None}
        if "model" not in fields:
            changes["model"] = json.dumps(case.model).encode()
        return Sent(_route(fields), set_fields(body, changes))
    except OSError as error:
        raise ValueError(error.strerror or "it cannot be read") from None
    except (msgspec.DecodeError, RecursionError) as error:
        raise ValueError(str(error)) from None


def _route(fields: Mapping[str, Any]) -> str:
    """Where a body with these fields goes; chat and messages differ in where the system text is."""
    if "input" in fields:
        return "/v1/responses"
    if "prompt" in fields:
        return "/v1/completions"
    anthropic = {"system", "thinking", "anthropic_version", "stop_sequences"}
    return "/v1/messages" if anthropic & fields.keys() else "/v1/chat/completions"


def _no_reply(case: Case, reply: Unanswered) -> Finding:
    if reply.kind is Kind.SILENT:
        return TOPIC.error(
            f"No reply within {case.patience:g} s.",
            "Clients give up, too: the engine is overloaded, or prefills a prompt that long.",
            "gateway doctor --only ttft -c gateway.yaml",
        )
    return TOPIC.error(
        f"The connection broke instead of a reply ({reply.detail}).",
        "Clients report a network error; the gateway's log says what happened.",
        f"gateway doctor --only reachability --url {case.address.root}",
    )


def _read(case: Case, sent: Sent, reply: Reply) -> Finding:
    answer = reply.member(sent.member)
    if reply.ok and isinstance(answer, list) and (answer or sent.member != "choices"):
        return TOPIC.ok(f"POST {sent.path} gives an answer, with {sent.member}.")
    what, fix = _meaning(case, sent, reply)
    return TOPIC.error(
        f"POST {sent.path} gives no answer but HTTP {reply.status}: {what} The raw reply: "
        f"{_raw(case, reply)}",
        f"It has no {sent.member}, so a client that does not look at the status fails with "
        f"KeyError: '{sent.member}' or \"reading '{sent.member}'\", and hides this message.",
        fix,
    )


def _raw(case: Case, reply: Reply) -> str:
    """Masked before it is cut, so that no half of a secret is left."""
    text = " ".join(case.mask.hide(reply.text).split())
    cut = f"{text[:SHOWN]}… ({len(reply.body)} bytes)" if len(text) > SHOWN else text
    return cut or "(empty)"


_CAUSES = {401: Cause.KEY, 502: Cause.SERVERS, 503: Cause.SERVERS}
"""Refusals that an earlier check may have explained: then it is one error, not two."""

_BY_STATUS = {
    400: (
        "the request itself is at fault.",
        "${EDITOR:-vi} body.json   # correct what the reply names",
    ),
    401: ("the key was refused.", "gateway doctor --only credentials"),
    403: ("the key may not do this.", "gateway doctor --only credentials"),
    413: ("the request is too large.", "server: {max_body_mib: 64}   # in gateway.yaml"),
    429: ("a limit of the key is used up.", "requests_per_minute: 600   # at this key, higher"),
    503: ("nothing that serves the model has room, or is up.", "gateway backends"),
    504: ("the engine was too slow.", "gateway doctor --only ttft -c gateway.yaml"),
}


def _meaning(case: Case, sent: Sent, reply: Reply) -> tuple[str, str]:
    """What a reply that is no answer is, and the command that goes on from there."""
    data = reply.json()
    if not isinstance(data, dict):
        return _no_json(reply), "gateway doctor --only base-url"
    error = data.get("error")
    if error is None:
        return _other_answer(sent, data), "gateway doctor --only base-url"
    code = error.get("code") if isinstance(error, dict) else None
    if code == "model_not_found" or (reply.status == 404 and code != "route_not_found"):
        known = next(iter(case.models), "MODEL")
        return "the model is unknown.", f"export GATEWAY_MODEL={known}"
    if reply.status == 404:
        return "the path is wrong.", "gateway doctor --only base-url"
    if reply.ok:
        return "an error with the status of success.", "gateway doctor --only base-url"
    if isinstance(error, dict) and code in ("no_backend", "backend_error"):
        return "no engine could answer.", "gateway backends"
    return _BY_STATUS.get(reply.status, ("an error.", "gateway backends"))


def _no_json(reply: Reply) -> str:
    text = reply.text.lstrip()
    if not text:
        return "an empty body."
    if text.startswith("<"):
        return "a web page, which some proxy or another server wrote."
    if text.startswith(("data:", "event:", ":")):
        return "an event stream, although none was asked for."
    return "text that is no JSON object."


def _other_answer(sent: Sent, data: Mapping[str, Any]) -> str:
    if data.get("choices") == []:
        return "an answer with no choice in it."
    for member in ("choices", "content", "output"):
        if isinstance(data.get(member), list) and member != sent.member:
            return f"an answer of another API, with {member}."
    return "JSON of another kind, which no model wrote."
