"""`gateway reload`: have a running gateway read its configuration anew."""

from __future__ import annotations

import typer

from gateway.admin.views import ReloadView
from gateway.cli.remote import AdminKey, AsJson, Remote, Url, show_json


def reload(url: Url = None, key: AdminKey = "", as_json: AsJson = False) -> None:
    """Have a running gateway read its configuration anew, and say what changed.

    A configuration with faults changes nothing: every fault is listed and the status is 1.

    Example: gateway reload
    """
    answer = Remote(url, key).post("reload")
    if as_json:
        show_json(answer)
        return
    changed = ReloadView.model_validate(answer).changed
    typer.echo("\n".join(changed) or "Reloaded; nothing changed.")
