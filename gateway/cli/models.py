"""`gateway models`: which models a gateway serves."""

from __future__ import annotations

from gateway.admin.views import ModelView
from gateway.cli.remote import (
    AdminKey,
    AsJson,
    Remote,
    Url,
    percent,
    show_json,
    show_table,
)


def models(url: Url = None, key: AdminKey = "", as_json: AsJson = False) -> None:
    """List the models clients may name, their arms and how many servers can answer now.

    Example: gateway models --url http://gateway.internal:8080
    """
    answer = Remote(url, key).get("models")
    if as_json:
        show_json(answer)
        return
    rows = []
    for model in (ModelView.model_validate(one) for one in answer):
        arms = ", ".join(f"{arm.name} {percent(arm.share)}" for arm in model.arms)
        backends = [backend for arm in model.arms for backend in arm.backends]
        usable = sum(backend.usable for backend in backends)
        aliases = ", ".join(model.aliases) or "-"
        rows.append((model.name, aliases, arms, f"{usable} of {len(backends)} usable"))
    show_table(("MODEL", "ALIASES", "ARMS", "BACKENDS"), rows)
