"""`gateway connect`: point a client at the gateway."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import Annotated, Any

import msgspec
import typer

from gateway.cli.connect import instructions, programs
from gateway.cli.connect.userfiles import Change, Home, apply, readable_by_others
from gateway.cli.connect.verify import Verdict, verify
from gateway.cli.main import FAILED
from gateway.cli.remote import Url, show_json
from gateway.cli.target import Wanted, find
from gateway.clients.known import CLIENTS
from gateway.clients.profile import Profile
from gateway.clients.setup import KEY_VARIABLE, Target


def connect(
    client: Annotated[
        str,
        typer.Argument(metavar="CLIENT", help=f"One of {', '.join(CLIENTS)}.", show_default=False),
    ],
    url: Url = None,
    key: Annotated[
        str,
        typer.Option(
            "--key",
            envvar=KEY_VARIABLE,
            help="The client's key; else the first one in its configuration.",
            show_default=False,
        ),
    ] = "",
    model: Annotated[
        str, typer.Option("--model", help="Else the first the gateway lists.", show_default=False)
    ] = "",
    config: Annotated[
        Path | None,
        typer.Option(
            "--config",
            "-c",
            help="The gateway's configuration, for what is left out; else gateway.yaml, if there.",
            show_default=False,
        ),
    ] = None,
    write: Annotated[
        bool, typer.Option("--write", help="Edit the client's own files, after showing how.")
    ] = False,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Write without asking.")] = False,
    check: Annotated[
        bool, typer.Option("--verify", help="Send a request as the client would.")
    ] = False,
    use_proxy: Annotated[
        bool, typer.Option("--use-proxy", help="Verify through HTTP_PROXY and its like.")
    ] = False,
    show_key: Annotated[bool, typer.Option("--show-key", help="Print the key in whole.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print it for programs.")] = False,
) -> None:
    """Print the base URL, key and model for a client, and exactly what to set; or set it.

    --write shows the change, asks, keeps the old file beside the new one and puts the key into
    it; of a client that stores settings by a command of its own it runs that. --verify ends with
    status 1 if the client would not get an answer.

    Example: gateway connect claude-code --verify

    Example: gateway connect codex --write --url https://gateway.example --model llama-3-70b

    Example: gateway connect openai-python -c gateway.yaml --show-key
    """
    if write and as_json and not yes:
        raise typer.BadParameter("nobody can be asked with --json: add --yes", param_hint="--write")
    if client not in CLIENTS:
        raise typer.BadParameter(f"{client!r} is none of {', '.join(CLIENTS)}", param_hint="CLIENT")
    profile = CLIENTS[client]
    found = find(Wanted(url, key, model, config))
    home = Home(Path.home(), os.environ)
    tell: Callable[[str], None] = (lambda text: None) if as_json else typer.echo
    if write:
        answer = _write(profile, found.target, home, tell, yes=yes, whole=show_key)
    else:
        answer = _show(profile, found.target, home, tell, whole=show_key)
    remarks = () if check else found.remarks
    for remark in remarks:
        tell(f"\n{remark}")
    verdict = verify(profile, found.target, env=os.environ, use_proxy=use_proxy) if check else None
    undone = "ran" in answer and answer["ran"] is None
    if as_json:
        show_json(answer | {"remarks": remarks, "verified": msgspec.to_builtins(verdict)})
    elif verdict is not None:
        _tell(verdict)
    if undone or (verdict is not None and not verdict.ok):
        raise typer.Exit(FAILED)


def _show(
    profile: Profile, target: Target, home: Home, tell: Callable[[str], None], *, whole: bool
) -> dict[str, Any]:
    setup = profile.setup(target if whole else replace(target, key=None), home.read)
    exported = os.environ.get(KEY_VARIABLE) == target.key
    tell(instructions.page(profile, target, setup, home, show_key=whole, exported=exported))
    return instructions.as_json(profile, target, setup, home, show_key=whole)


def _write(
    profile: Profile,
    target: Target,
    home: Home,
    tell: Callable[[str], None],
    *,
    yes: bool,
    whole: bool,
) -> dict[str, Any]:
    """Make the changes that are needed, once they are agreed to."""
    setup = profile.setup(target, home.read)
    if setup.program:
        ran = programs.run(setup, target.key or "", tell, yes=yes, env=os.environ)
        return {"written": [], "ran": ran}
    if not setup.files:
        tell(f"{profile.title} has no file of its own, so there is nothing to write.\n")
        return _show(profile, target, home, tell, whole=whole) | {"written": []}
    changes = [change for change in map(home.change, setup.files) if change.needed]
    for change in changes:
        tell(change.shown(show_secrets=whole) + "\n")
    if changes and not yes:
        typer.confirm("Write this?", abort=True)
    written = [_apply(change, target.key or "", tell) for change in changes]
    if not changes:
        tell("Everything stands there already; nothing was changed.")
    for sentence in setup.left:
        tell(sentence)
    return {"written": written}


def _apply(change: Change, key: str, tell: Callable[[str], None]) -> dict[str, str | None]:
    backup = apply(change, datetime.now())
    tell(f"Wrote {change.path}" + (f"; as it was: {backup}" if backup else ""))
    if key in change.after and readable_by_others(change.path):
        tell(f"It holds a key that others may read: chmod 600 {change.path}")
    return {"path": str(change.path), "backup": str(backup) if backup else None}


def _tell(verdict: Verdict) -> None:
    first = f" First token after {verdict.ttft_ms:g} ms." if verdict.ttft_ms is not None else ""
    typer.echo(f"\n{verdict.sentence}{first}", err=not verdict.ok)
    if verdict.remark:
        typer.echo(verdict.remark)
    if not verdict.ok:
        typer.echo("gateway doctor, with the same --url and --key, looks further.", err=True)
