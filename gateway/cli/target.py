"""Which gateway, key and model a client is pointed at: from options, environment, file or gateway.

Options and the environment win over the configuration file; the model is asked of the gateway.
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlsplit

import httpx
import typer

from gateway.cli.remote import DEFAULT_URL, trust
from gateway.clients.setup import KEY_VARIABLE, Target
from gateway.errors import GatewayError
from gateway.settings import Settings, load

USUAL_FILE = Path("gateway.yaml")
PATIENCE = 3.0
"""Seconds a gateway has to name its models; without an answer the file or --model counts."""

_ENDING = re.compile(r"(?:/+|/v1|/chat/completions|/responses|/messages)+$")
_EVERYWHERE = {"0.0.0.0": "127.0.0.1", "::": "[::1]"}


@dataclass(frozen=True, slots=True)
class Wanted:
    """What the command line and the environment say; empty is unsaid."""

    url: str
    key: str
    model: str
    config: Path | None


@dataclass(frozen=True, slots=True)
class Found:
    """Attributes:
    target: with its key.
    remarks: what is doubtful about it, a sentence each.
    """

    target: Target
    remarks: tuple[str, ...]


def find(wanted: Wanted) -> Found:
    """Complete what was said.

    Raises:
        ConfigError: the configuration file has faults.
        GatewayError: no model is known.
        typer.BadParameter: the address is none, or there is no key.
    """
    settings = _settings(wanted)
    root = _root(wanted.url or _address(settings))
    key = wanted.key or _first_key(settings)
    if not key:
        raise typer.BadParameter(
            f"needed: set {KEY_VARIABLE} to one of the keys in the gateway's configuration, or "
            "name that file with -c",
            param_hint="--key",
        )
    if not (key.isascii() and key.isprintable()) or " " in key:
        raise typer.BadParameter("holds characters no key has", param_hint="--key")
    return _with_model(root, key, wanted.model, settings)


def _settings(wanted: Wanted) -> Settings | None:
    if wanted.config is not None:
        return load(wanted.config, os.environ)
    missing = not (wanted.url and wanted.key)
    return load(USUAL_FILE, os.environ) if missing and USUAL_FILE.is_file() else None


def _address(settings: Settings | None) -> str:
    if settings is None or not settings.server.port:
        return DEFAULT_URL
    host = settings.server.host
    host = _EVERYWHERE.get(host) or (f"[{host}]" if ":" in host else host)
    return f"http://{host}:{settings.server.port}"


def _root(url: str) -> str:
    """The address as people paste it, without what clients add to it themselves."""
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.hostname or parts.query:
        raise typer.BadParameter(f"{url!r} is no http(s)://HOST:PORT", param_hint="--url")
    return _ENDING.sub("", url)


def _first_key(settings: Settings | None) -> str:
    secrets = (one.key for one in (settings.keys if settings else ()))
    return next((secret.get_secret_value() for secret in secrets if secret is not None), "")


def _with_model(root: str, key: str, wanted: str, settings: Settings | None) -> Found:
    path = f"/{quote(wanted, safe='')}" if wanted else ""
    answer = _ask(f"{root}/v1/models{path}", key)
    if wanted:
        remarks = () if answer else _unconfirmed(root, wanted)
        return Found(Target(root, key, wanted, _window(answer)), remarks)
    listed = answer.get("data") if answer else None
    if isinstance(listed, list) and listed:
        return Found(Target(root, key, str(listed[0].get("id")), _window(listed[0])), ())
    if settings is not None and settings.models:
        name, model = next(iter(settings.models.items()))
        return Found(Target(root, key, name, model.context_window), _unconfirmed(root, name))
    raise GatewayError(
        f"{root} does not say which models this key may use: the gateway is not running there, or "
        "does not know the key. Name the model with --model, or mend the address or key."
    )


def _unconfirmed(root: str, model: str) -> tuple[str, ...]:
    return (
        f"{root} did not confirm model {model}: the gateway is not running there, or this key or "
        "model is unknown to it; --verify says which.",
    )


def _ask(url: str, key: str) -> dict[str, Any] | None:
    """The gateway's answer, or None where there is none of use."""
    headers = {"authorization": f"Bearer {key}"}
    try:
        # Neither a proxy of the environment nor a .netrc has a say in who gets the key.
        reply = httpx.get(
            url, headers=headers, timeout=PATIENCE, trust_env=False, verify=trust(url)
        )
        answer = reply.json() if reply.is_success else None
    except (httpx.HTTPError, httpx.InvalidURL, ValueError):
        return None
    return answer if isinstance(answer, dict) else None


def _window(model: dict[str, Any] | None) -> int | None:
    window = (model or {}).get("context_window")
    return window if isinstance(window, int) else None
