"""`gateway serve`: run the gateway."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import logging
import os
import resource
import signal
import socket
import sys
from functools import partial
from pathlib import Path
from typing import Annotated

import typer
import uvicorn
import uvloop

from gateway.app import Gateway, create_app
from gateway.cli.address import url_of
from gateway.cli.listening import BACKLOG, listen
from gateway.cli.usual_file import USUAL_FILE, File, SameFile, named_file
from gateway.edge.protocol import GatewayProtocol
from gateway.edge.server import Server
from gateway.reload import Reloader, signature
from gateway.settings import Settings, load

# Clients and load balancers keep connections for a minute; closing first makes them race.
KEEP_ALIVE = 75

log = logging.getLogger("gateway")


def _configured(option: typer.CallbackParam, value: str | None) -> None:
    """Refuse what other servers take as an option, and say where it is set."""
    if value is not None:
        variable = f"GATEWAY_SERVER__{option.name}".upper()
        raise typer.BadParameter(
            f"set server.{option.name} in the configuration, or {variable} in the environment"
        )


Configured = Annotated[str | None, typer.Option(hidden=True, callback=_configured)]


def serve(
    file: File = None,
    config: SameFile = None,
    access_log: Annotated[
        str | None,
        typer.Option(
            metavar="FILE",
            help="File for the access log, '-' for standard output; JSON, but for a short line a "
            "request where none is named and standard output is a terminal.",
            show_default=False,
        ),
    ] = None,
    host: Configured = None,
    port: Configured = None,
) -> None:
    """Run the gateway.

    The configuration is read anew when the file changes, on SIGHUP and by `gateway reload`.
    SIGTERM drains: /ready turns 503, open streams finish.

    Example: gateway serve -c gateway.yaml --access-log access.jsonl
    """
    logging.basicConfig(
        level=logging.INFO, stream=sys.stderr, format="%(asctime)s %(levelname)s %(message)s"
    )
    for noisy in ("httpx", "uvicorn.error", "alembic"):
        logging.getLogger(noisy).setLevel(logging.WARNING)
    path = named_file(file, config) or USUAL_FILE
    read = partial(load, path, os.environ)
    seen = signature(path)
    settings = read()
    listener = _listen(settings)
    _allow_open_files()
    log_file = None if access_log in ("-", None) else Path(access_log)
    gateway = Gateway(settings, log_file, brief=access_log is None and os.isatty(1))
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(_run(gateway, Reloader(path, seen, read, gateway.reload), listener))


async def _run(gateway: Gateway, reloader: Reloader, listener: socket.socket) -> None:
    config = uvicorn.Config(
        create_app(gateway, reloader.reload),
        http=partial(GatewayProtocol, gateway.context, gateway.paths),  # type: ignore[arg-type]  # any callable does
        ws="none",
        lifespan="on",
        log_config=None,
        access_log=False,
        server_header=False,
        date_header=False,
        backlog=BACKLOG,
        timeout_keep_alive=KEEP_ALIVE,
    )
    context = gateway.context
    server = Server(
        config,
        settings=lambda: context.settings.server,
        on_start=partial(
            _announce, context.settings, gateway.store.file, url_of(*listener.getsockname()[:2])
        ),
        on_drain=gateway.drain,
    )
    asyncio.get_running_loop().add_signal_handler(signal.SIGHUP, reloader.ask)
    watcher = asyncio.create_task(reloader.watch())
    # What is loaded by now stays; the collector need not look at it again and again.
    gc.collect()
    gc.freeze()
    try:
        await server.serve(sockets=[listener])
    finally:
        watcher.cancel()


def _listen(settings: Settings) -> socket.socket:
    return listen(
        settings.server.host,
        settings.server.port,
        "server.host or GATEWAY_SERVER__HOST",
        "Is another gateway running? Choose another port with server.port or GATEWAY_SERVER__PORT.",
    )


def _allow_open_files() -> None:
    """Have as many descriptors as the system allows: a stream takes two.

    The usual 1024 is for programs that call select(). Without one left no backend can be probed,
    and all of them count as down.
    """
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    with contextlib.suppress(ValueError, OSError):  # macOS has another limit below this one
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


def _announce(settings: Settings, database: Path, url: str) -> None:
    log.info("listening on %s", url)
    log.info("base URL for OpenAI SDKs and Codex: %s/v1", url)
    log.info("base URL for Claude Code and Anthropic SDKs: %s", url)
    log.info("weights and backends taken out are kept in %s", database)
    log.info("models: %s", ", ".join(settings.models) or "none configured")
