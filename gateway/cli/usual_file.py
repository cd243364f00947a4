"""The configuration file that counts where none is named, and the gateway that it is of."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated, NamedTuple

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


class Located(NamedTuple):
    """A gateway that a command speaks to.

    Attributes:
        settings: its own, as a file has them; None where no file is known to be its own.
    """

    address: Address
    settings: Settings | None

    @property
    def admin_key(self) -> str:
        """Empty where it is not known."""
        key = self.settings and self.settings.admin.key
        return key.get_secret_value() if key else ""

    @property
    def client_key(self) -> str:
        """The first in plain; empty where none is known."""
        keys = (one.key for one in (self.settings.keys if self.settings else ()))
        return next((key.get_secret_value() for key in keys if key is not None), "")


def locate(url: str | None, file: Path | None = None) -> Located:
    """The gateway where an option `--url` says; else the one of the file that stands here, on this
    machine, or one at an address that nobody configured.

    Another host has to be named: a file that came with somebody's checkout would say who gets the
    keys of the environment. Nor are the file's own keys for any gateway but the one it configures.

    Args:
        file: the gateway's own, as an option names it: what it says counts, whoever answers.

    Raises:
        ConfigError: the file that was named has faults.
        typer.BadParameter: the address is none.
    """
    if file is not None:
        named = load(file, os.environ)
        return Located(option(url) if url is not None else parse(_url(named)), named)
    settings = _settings()
    address = parse(_url(settings)) if url is None else option(url)
    if url is None and not address.loopback:
        address = parse(DEFAULT_URL)
    own = settings is not None and address.same_server(parse(configured(settings)))
    return Located(address, settings if own else None)


def why_no_key(gateway: Located) -> str:
    """Why no file gave a key for this gateway, as the end of a sentence."""
    if gateway.settings is not None:
        return "; the configuration here has none"
    if usual_file() is None:
        return f", or run this where its {USUAL_FILE} stands"
    settings = _settings()
    if settings is None:
        return f"; {USUAL_FILE} here has faults, which `gateway check` lists"
    return f"; {USUAL_FILE} here is of the gateway at {configured(settings)}"


def _url(settings: Settings | None) -> str:
    """Where a configuration's gateway listens; the default without one, or if it takes any port."""
    return configured(settings) if settings and settings.server.port else DEFAULT_URL


def _settings() -> Settings | None:
    """None, too, if the file has faults: they are not what was asked about."""
    file = usual_file()
    try:
        return None if file is None else load(file, os.environ)
    except ConfigError:
        return None
