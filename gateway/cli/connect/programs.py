"""A client's own command that stores its settings: shown, agreed to, and run."""

from __future__ import annotations

import re
import shlex
import shutil
import subprocess
from collections.abc import Callable, Mapping

import typer

from gateway.cli.masking import Mask, masked
from gateway.clients.setup import Setup
from gateway.errors import GatewayError

PATIENCE = 60.0
"""Seconds a command may take."""

_COLOUR = re.compile(r"\x1b\[[0-9;]*m")

SEEN = (
    "Its key is an argument, since {name} takes it no other way: while it runs, for a second or "
    "two, other users of this machine may see it in the list of processes."
)


def run(
    setup: Setup, key: str, tell: Callable[[str], None], *, yes: bool, env: Mapping[str, str]
) -> str | None:
    """Run `setup.program`; returns its line without the key, None where it is not installed.

    Raises:
        GatewayError: it failed, or took too long.
        typer.Abort: it was not agreed to.
    """
    name, *rest = setup.program
    hide = Mask((key,)).hide
    shown = " ".join(masked(one) if one == key else shlex.quote(one) for one in setup.program)
    tell(f"To run:\n\n{shown}\n")
    found = shutil.which(name, path=env.get("PATH"))
    if found is None:
        tell(
            f"{name} is not on the PATH here, so nothing was set. Install it ({setup.install}) "
            "and run this again, or run that line where it is, with the key in whole."
        )
        for note in setup.notes:
            tell(note)
        return None
    tell(SEEN.format(name=name))
    if not yes:
        typer.confirm("Run this?", abort=True)
    done = _done([found, *rest], name, env)
    said = hide(_COLOUR.sub("", done.stdout)).strip()
    if done.returncode:
        raise GatewayError(f"{name} failed with status {done.returncode}: {said or 'no word'}")
    tell(said or f"{name} has taken it over.")
    return shown


def _done(
    command: list[str], name: str, env: Mapping[str, str]
) -> subprocess.CompletedProcess[str]:
    try:
        return subprocess.run(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            env=env,
            timeout=PATIENCE,
            text=True,
            errors="replace",
        )
    except subprocess.TimeoutExpired:
        # The exception holds the command, and with it the key.
        raise GatewayError(f"{name} did not end within {PATIENCE:g} s.") from None
