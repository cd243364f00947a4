"""What `gateway connect` prints: the triple, and everything to set, ready to paste."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from typing import Any

from gateway.cli.connect.edit import fragment
from gateway.cli.connect.userfiles import Home
from gateway.cli.masking import masked
from gateway.clients.profile import Profile
from gateway.clients.setup import KEY_VARIABLE, PLACEHOLDER, Setup, Target, in_shell

_KEY_NAMED = re.compile(rf"\b{KEY_VARIABLE}\b")


def page(
    profile: Profile, target: Target, setup: Setup, home: Home, *, show_key: bool, exported: bool
) -> str:
    """The whole page.

    Args:
        target: with its key.
        exported: the shell's GATEWAY_KEY is that key already.
    """
    key = target.key or ""
    lines = [
        f"{profile.title}, pointed at the gateway:",
        "",
        f"  base URL  {target.base_url(profile.api)}",
        f"  key       {key if show_key else masked(key)}",
        f"  model     {target.model}",
    ]
    settings = list(_settings(setup, home))
    if _KEY_NAMED.search("\n".join(settings)):
        settings = [*_export(key, show_key=show_key, exported=exported), *settings]
    return "\n".join([*lines, *settings])


def as_json(
    profile: Profile, target: Target, setup: Setup, home: Home, *, show_key: bool
) -> dict[str, Any]:
    """The same for programs."""
    key = target.key or ""
    return {
        "client": profile.name,
        "base_url": target.base_url(profile.api),
        "key": key if show_key else masked(key),
        "model": target.model,
        "environment": dict(setup.environment),
        "files": [
            {"path": str(home.path(file)), "form": file.form, "content": fragment(file) + "\n"}
            for file in setup.files
        ],
        "commands": list(setup.commands),
        "code": setup.code,
        "notes": list(setup.notes),
    }


def _export(key: str, *, show_key: bool, exported: bool) -> Iterator[str]:
    if exported:
        yield from ("", f"{KEY_VARIABLE} is set in this shell; elsewhere set it first.")
    elif show_key:
        yield from _block(
            "The key, once in the shell:", f"export {KEY_VARIABLE}={shlex.quote(key)}"
        )
    else:
        yield from _block(
            "The key, once in the shell (--show-key puts it here in whole):",
            f"export {KEY_VARIABLE}={PLACEHOLDER}",
        )


def blocks(setup: Setup, home: Home) -> Iterator[tuple[str, str]]:
    """Everything to set, one title and text to paste at a time."""
    if setup.environment:
        exports = (f"export {name}={in_shell(text)}" for name, text in setup.environment.items())
        yield "In the shell that starts it:", "\n".join(exports)
    for command in setup.commands:
        yield "Run:", command
    for file in setup.files:
        yield f"In {home.shown(file)}:", fragment(file)
    if setup.code:
        yield "In the program:", setup.code


def _settings(setup: Setup, home: Home) -> Iterator[str]:
    for title, text in blocks(setup, home):
        yield from _block(title, text)
    if setup.notes:
        yield from ("", *setup.notes)


def _block(title: str, text: str) -> Iterator[str]:
    """Indented nowhere, so that it can be pasted as it stands."""
    yield from ("", f"# {title}", text.rstrip("\n"))
