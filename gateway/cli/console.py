"""`gateway console`: the web console, a process of its own."""

from __future__ import annotations

import asyncio
import logging
import socket
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated

import httpx
import typer

from gateway.cli.address import url_of
from gateway.cli.asking import trust
from gateway.cli.connect.instructions import blocks
from gateway.cli.connect.userfiles import Home
from gateway.cli.listening import listen
from gateway.cli.remote import TIMEOUT, Url
from gateway.cli.usual_file import locate
from gateway.clients.profile import Profile
from gateway.clients.setup import KEY_VARIABLE, Target
from gateway.errors import GatewayError
from gateway.extras import install

PORT = 8090
INSTALL = f"The console needs packages that are not installed: {install('console')} installs them."

log = logging.getLogger("gateway.console")


def console(
    url: Url = None,
    host: Annotated[str, typer.Option(help="Where to listen.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="0 for any.")] = PORT,
    metrics_key: Annotated[
        str,
        typer.Option(
            "--metrics-key",
            envvar="GATEWAY_METRICS_KEY",
            help="metrics.key of the gateway, where it has one.",
            show_default=False,
        ),
    ] = "",
    client_key: Annotated[
        str,
        typer.Option(
            "--client-key",
            envvar=KEY_VARIABLE,
            help="A gateway key with which holders of admin.key may use the playground.",
            show_default=False,
        ),
    ] = "",
) -> None:
    """Watch and steer a running gateway from a browser.

    Its visitors sign in with the gateway's admin.key, or with admin.read_key to look only; the
    console itself needs no key. It reads the gateway over HTTP and can run anywhere.

    Example: gateway console --url http://127.0.0.1:8080
    """
    if not installed():
        raise GatewayError(INSTALL)
    root = locate(url).address.root
    logging.basicConfig(
        level=logging.INFO, stream=sys.stderr, format="%(asctime)s %(levelname)s %(message)s"
    )
    for noisy in ("httpx", "uvicorn.error", "nicegui"):
        logging.getLogger(noisy).setLevel(logging.WARNING)
    listener = listen(host, port, "--host", "Choose another with --port.")
    asyncio.run(_run(root, metrics_key, client_key, listener))


def installed() -> bool:
    """Whether the packages of the extra `console` are there."""
    return find_spec("nicegui") is not None


async def _run(url: str, metrics_key: str, client_key: str, listener: socket.socket) -> None:
    import uvicorn

    from gateway.console.app import create_app
    from gateway.console.pages.frame import Instructions
    from gateway.console.remote import Remote

    # Neither a proxy of the environment nor a .netrc has a say in who gets the key.
    client = httpx.AsyncClient(base_url=url, timeout=TIMEOUT, trust_env=False, verify=trust(url))
    home = Home(Path.home(), {})

    def settings(profile: Profile, target: Target) -> Instructions:
        # The visitor's files are on another machine: what is in them is not known here.
        setup = profile.setup(target, lambda file: None)
        return Instructions(list(blocks(setup, home)), setup.notes)

    app = create_app(Remote(client, metrics_key), settings, client_key)
    config = uvicorn.Config(app, log_config=None, access_log=False, server_header=False)
    own = url_of(*listener.getsockname()[:2])
    log.info("open %s in a browser: the console of %s", own, url)
    await uvicorn.Server(config).serve(sockets=[listener])
