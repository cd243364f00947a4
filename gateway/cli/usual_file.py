"""The configuration file that counts where none is named: one in the working directory."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated

import typer

from gateway.cli.address import Address, configured, option, parse
from gateway.errors import ConfigError
from gateway.settings import Settings, load

USUAL_FILE = Path("gateway.yaml")
DEFAULT_URL = "http://127.0.0.1:8080"

File = Annotated[
    Path | None,
    typer.Argument(
        metavar="FILE",
        help=f"The configuration file; {USUAL_FILE} by default.",
        show_default=False,
    ),
]
SameFile = Annotated[
    Path | None,
    typer.Option("--config", "-c", metavar="FILE", help="The same.", show_default=False),
]


def named_file(file: Path | None, same: Path | None) -> Path | None:
    """The file that a command line names, by itself or as an option; None if it names none.

    Raises:
        typer.BadParameter: it names two.
    """
    if file is not None and same is not None:
        raise typer.BadParameter("give the configuration once, as FILE or with -c")
    return file or same


def usual_file() -> Path | None:
    """None: there is none."""
    return USUAL_FILE if USUAL_FILE.is_file() else None


def usual_address(url: str | None) -> Address:
    """The address that an option `--url` gives; else where the gateway of that file listens on this
    machine, or one that nobody configured.

    Another host has to be named: a file that came with somebody's checkout would say who gets the
    admin key of the environment.

    Raises:
        typer.BadParameter: it is none.
    """
    if url is not None:
        return option(url)
    found = parse(gateway_url(_settings()))
    return found if found.loopback else parse(DEFAULT_URL)


def gateway_url(settings: Settings | None) -> str:
    """Where a configuration's gateway listens; the default without one, or if it takes any port."""
    return configured(settings) if settings and settings.server.port else DEFAULT_URL


def usual_admin_key(address: Address) -> str:
    """admin.key of that file, for the gateway it configures: no other server is to see it.

    Empty where there is none.
    """
    settings = _settings()
    if settings is None or not address.same_server(parse(configured(settings))):
        return ""
    key = settings.admin.key
    return "" if key is None else key.get_secret_value()


def _settings() -> Settings | None:
    """None, too, if the file has faults: they are not what was asked about."""
    file = usual_file()
    try:
        return None if file is None else load(file, os.environ)
    except ConfigError:
        return None
