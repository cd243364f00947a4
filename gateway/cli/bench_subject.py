"""What `gateway bench` finds out before it sends load: the model, its backends, who is watched."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import typer
from pydantic import ValidationError

from gateway.admin.backend_view import BackendView
from gateway.bench.load import head
from gateway.bench.results import Sources
from gateway.bench.watch.engines import Engine
from gateway.cli.address import parse
from gateway.cli.answering import listed, unlisted
from gateway.cli.asking import Asker
from gateway.cli.key_form import sendable
from gateway.cli.remote import Remote
from gateway.errors import GatewayError

PATIENCE = 5.0


def check_heads(root: str, keys: Mapping[str, str], model: str, arms: Sequence[str]) -> None:
    """Nothing that could end a line of a request's head gets into one.

    Args:
        keys: by what gave them; empty for none.

    Raises:
        typer.BadParameter: something would.
    """
    if not head.fits(root) or " " in root:
        raise typer.BadParameter("holds blanks or control characters", param_hint="--url")
    for name, key in keys.items():
        if key and not sendable(key):
            raise typer.BadParameter("holds characters no key has", param_hint=name)
    for name, values in (("--arm", arms), ("--model", (model,))):
        for value in values:
            if not head.fits(value):
                what = "control characters, or blanks at its ends, which no request can carry"
                raise typer.BadParameter(f"{value!r} holds {what}", param_hint=name)


def first_model(root: str, key: str) -> str:
    """Raises:
    GatewayError: there is none.
    """
    answer = Asker(PATIENCE)(f"{root}/v1/models", key=key)
    models = listed(answer)
    if not models:
        raise GatewayError(f"{unlisted(root, answer)} Set --url, GATEWAY_KEY, or --model.")
    return str(models[0]["id"])


def backends_of(root: str, admin_key: str, model: str) -> tuple[list[BackendView], tuple[str, ...]]:
    """The model's backends, as the admin API tells them; and a sentence where it does not.

    An admin key may be left over in the environment of somebody who asks an engine itself.
    """
    if not admin_key:
        return [], ()
    try:
        told = Remote(root, admin_key, "--admin-key").get("backends")
        found = [BackendView.model_validate(one) for one in told]
    except (GatewayError, ValidationError) as error:
        why = error.message if isinstance(error, GatewayError) else "Its answer has another form."
        return [], (f"The admin API of {root} named no engines: {why}",)
    own = [one for one in found if one.model == model.partition("@")[0]] or found
    return own, tuple(
        f"Backend {one.name} is not what its configuration says: {'; '.join(one.differences)}."
        for one in own
        if one.differences
    )


def facts_of(backends: Sequence[BackendView]) -> dict[str, dict[str, Any]]:
    """What is declared of each arm's engines, and over it what they say themselves; of several
    engines, the first that says it."""
    facts: dict[str, dict[str, Any]] = {}
    for one in reversed(backends):
        declared = one.engine.model_dump(exclude_none=True, mode="json") if one.engine else {}
        declared |= one.running.model_dump(exclude_none=True) if one.running else {}
        if one.engine_version:
            declared["engine_version"] = one.engine_version
        facts[one.arm] = facts.get(one.arm, {}) | declared
    return facts


def engines_of(given: Sequence[str], arms: Sequence[str]) -> list[Engine]:
    """Raises:
    typer.BadParameter: one of them is no NAME=URL.
    """
    found = []
    for one in given:
        name, _, url = one.partition("=")
        if not name or not url or not head.fits(name):
            # Not repeated: an address without a name may hold a password.
            raise typer.BadParameter("takes NAME=URL", param_hint="--engine")
        found.append(Engine(name, _root(url, "--engine"), name if name in arms else ""))
    return found


def gpu_arms(given: Sequence[str]) -> dict[str, str]:
    """Which arm a GPU serves, by the GPU's name.

    Raises:
        typer.BadParameter: one of them is no ARM=0,1.
    """
    found: dict[str, str] = {}
    for one in given:
        arm, _, names = one.partition("=")
        if not arm or not names or not head.fits(one):
            raise typer.BadParameter(f"{one!r} is no ARM=0,1", param_hint="--gpu")
        found |= dict.fromkeys(names.split(","), arm)
    return found


def sources_of(
    engines: Sequence[Engine], exporters: Sequence[str], gpus: Mapping[str, str]
) -> Sources:
    """As the result may tell them: what an address has beside host and path may be secret.

    Raises:
        typer.BadParameter: an exporter's address is none.
    """
    return Sources(
        engines={one.name: one.url for one in engines},
        exporters=tuple(_root(url, "--dcgm") for url in exporters),
        gpus=gpus,
    )


def _root(url: str, hint: str) -> str:
    """An address without a password or a query; it is not repeated, for it may hold one."""
    try:
        return parse(url).root
    except ValueError:
        raise typer.BadParameter("holds no http(s)://HOST:PORT", param_hint=hint) from None
