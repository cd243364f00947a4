"""Codex behind an OAuth proxy: does the login fit what the configuration and the proxy ask for?"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from gateway.cli.address import parse
from gateway.cli.asking import Reply
from gateway.cli.doctor.case import Case
from gateway.cli.doctor.codex_auth import read, tokens
from gateway.cli.doctor.finding import Finding, Topic
from gateway.cli.doctor.tokens import claims, granted, scopes
from gateway.cli.key_form import sendable

_CALLBACKS = ("redirect_uri", "redirect_url", "callback_url", "callback")
_CHALLENGE = re.compile(r'(\w+)="([^"]*)"')
_LOGIN = "codex login"


def check(case: Case, topic: Topic, folder: Path, provider: Mapping[str, Any]) -> Iterator[Finding]:
    """Scope and callback address, as far as files, token and proxy state them.

    Codex itself fixes neither in its files; proxies with a login helper of their own write
    `scope` and `redirect_uri` beside the tokens or into the provider's table.
    """
    auth = read(case, folder)
    if isinstance(auth, str):
        return
    token = tokens(auth).get("access_token", "")
    if not token:
        return
    stated = {**_flat(provider), **_flat(auth)}
    missing = _wanted(stated) - granted(token)
    if granted(token) and missing:
        yield _too_narrow(topic, missing, token, "the configuration asks for it")
    else:
        yield from _asked(case, topic, token, provider)
    yield from _callback(topic, stated, token)
    yield from _audience(topic, token, provider)


def _flat(table: Mapping[str, Any]) -> dict[str, Any]:
    """A table's own members and those of its direct sub-tables."""
    inner = [value for value in table.values() if isinstance(value, dict)]
    return {name: value for part in (*inner, table) for name, value in part.items()}


def _wanted(stated: Mapping[str, Any]) -> frozenset[str]:
    return scopes(stated.get("scope")) | scopes(stated.get("scopes"))


def _too_narrow(topic: Topic, missing: frozenset[str], token: str, who: str) -> Finding:
    has = " ".join(sorted(granted(token))) or "none that it states"
    return topic.error(
        f"The login lacks the scope {' '.join(sorted(missing))} ({who}); it has: {has}.",
        "The OAuth proxy answers 401 or 403, however new the token is: a refresh keeps the scope "
        "it was granted with.",
        _LOGIN,
    )


def _asked(case: Case, topic: Topic, token: str, provider: Mapping[str, Any]) -> Iterator[Finding]:
    """What the proxy says to the token; it goes to the examined server alone."""
    url = provider.get("base_url")
    try:
        address = parse(url) if isinstance(url, str) else None
    except ValueError:
        return
    if address is None or not address.same_server(case.address) or not sendable(token):
        return
    reply = case.ask(f"{address.given}/models", key=token)
    if not isinstance(reply, Reply) or reply.status not in (401, 403):
        return
    challenge = dict(_CHALLENGE.findall(reply.headers.get("www-authenticate", "")))
    missing = scopes(challenge.get("scope")) - granted(token)
    if missing:
        yield _too_narrow(topic, missing, token, f"{address.root} asks for it")
    else:
        reason = challenge.get("error_description") or challenge.get("error") or "no reason given"
        yield topic.error(
            f"{address.root} answers {reply.status} to the login's access token: {reason[:200]}.",
            "Codex gets the same for every request.",
            _LOGIN,
        )


def _callback(topic: Topic, stated: Mapping[str, Any], token: str) -> Iterator[Finding]:
    """The callback addresses of files and token, which must be one to the last character."""
    places = {"the files": stated, "the token": claims(token)}
    found = {
        where: next((v for name in _CALLBACKS if isinstance(v := table.get(name), str)), "")
        for where, table in places.items()
    }
    ours, issued = found["the files"], found["the token"]
    if ours and issued and ours != issued:
        yield topic.error(
            f"The callback address is {ours} in Codex's files, and {issued} in the token.",
            "The login server compares them character by character (http and https, localhost "
            "and 127.0.0.1, port, slash at the end), and refuses the next login.",
            f'redirect_uri = "{issued}"',
        )


def _audience(topic: Topic, token: str, provider: Mapping[str, Any]) -> Iterator[Finding]:
    """Tokens made for one address are refused by another."""
    audience = claims(token).get("aud")
    meant = [audience] if isinstance(audience, str) else audience
    hosts = {_host(one) for one in meant} - {""} if isinstance(meant, list) else set()
    host = _host(provider.get("base_url"))
    if hosts and host and host not in hosts:
        yield topic.warning(
            f"The token was issued for {', '.join(sorted(hosts))}, and base_url is at {host}.",
            "A proxy that checks the audience answers 401.",
            _LOGIN,
        )


def _host(url: object) -> str:
    try:
        return urlsplit(url).hostname or "" if isinstance(url, str) else ""
    except ValueError:
        return ""
