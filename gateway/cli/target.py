"""Which gateway, key and model a client is pointed at: from options, environment, file or gateway.

Options and the environment win over the configuration file; the model is asked of the gateway.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

import typer

from gateway.cli.answering import listed, unlisted
from gateway.cli.asking import Asker, Reply
from gateway.cli.key_form import flaws, origin
from gateway.cli.usual_file import Located, locate, why_no_key
from gateway.clients.setup import KEY_VARIABLE, Target
from gateway.errors import GatewayError

PATIENCE = 3.0
"""Seconds a gateway has to name its models; without an answer the file or --model counts."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """What the command line and the environment say; empty or None is unsaid."""

    url: str | None
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
        ConfigError: the configuration file that was named has faults.
        GatewayError: no model is known.
        typer.BadParameter: the address is none, or there is no key.
    """
    gateway = locate(wanted.url, wanted.config)
    key = wanted.key or gateway.client_key
    if not key:
        raise typer.BadParameter(
            f"needed: set {KEY_VARIABLE} to one of the keys in the gateway's configuration, or "
            f"name that file with -c{why_no_key(gateway)}",
            param_hint="--key",
        )
    if wrong := flaws(key):
        source = origin(key, KEY_VARIABLE, "--key")
        raise typer.BadParameter(f"cannot be right: {'; '.join(wrong)}", param_hint=source)
    return _with_model(gateway, key, wanted.model)


def _with_model(gateway: Located, key: str, wanted: str) -> Found:
    root, settings = gateway.address.root, gateway.settings
    path = f"/{quote(wanted, safe='')}" if wanted else ""
    answer = Asker(PATIENCE)(f"{root}/v1/models{path}", key=key)
    if wanted:
        if isinstance(answer, Reply) and answer.ok:
            return _found(root, key, wanted, answer.member("context_window"))
        return _found(root, key, wanted, None, confirmed=False)
    if models := listed(answer):
        return _found(root, key, models[0]["id"], models[0].get("context_window"))
    if settings is not None and settings.models:
        name, model = next(iter(settings.models.items()))
        return _found(root, key, name, model.context_window, confirmed=False)
    raise GatewayError(
        f"{unlisted(root, answer)} Name the model with --model, or mend the address or key."
    )


def _found(root: str, key: str, model: str, window: object, *, confirmed: bool = True) -> Found:
    target = Target(root, key, model, window if isinstance(window, int) else None)
    if confirmed:
        return Found(target, ())
    remark = (
        f"{root} did not confirm model {model}: the gateway is not running there, or this key or "
        "model is unknown to it; --verify says which."
    )
    return Found(target, (remark,))
