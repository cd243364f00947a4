"""`gateway demo`: the gateway in front of two simulated engines, with traffic."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Annotated

import typer

from gateway.cli.console import INSTALL, installed
from gateway.cli.result_file import check_writable
from gateway.demo.plan import Plan
from gateway.demo.run import Demo
from gateway.demo.screen import Screen
from gateway.errors import GatewayError


def demo(
    requests: Annotated[
        int | None, typer.Option(min=1, help="End after this many requests; without, on Ctrl-C.")
    ] = None,
    json_file: Annotated[
        Path | None, typer.Option("--json", help="Write the figures to this file at the end.")
    ] = None,
    speed: Annotated[
        float, typer.Option(min=0.01, max=100, help="Simulated seconds in a real one.")
    ] = 1.0,
    concurrency: Annotated[int, typer.Option(min=1, max=1000, help="Conversations at a time.")] = 8,
    web: Annotated[
        bool | None,
        typer.Option(
            "--console/--no-console",
            help="Start the web console, too; by default if it is installed and no end is set.",
            show_default=False,
        ),
    ] = None,
) -> None:
    """Start two simulated engines (chunk 512 and 64) and the gateway, send traffic, show a table.

    The engines are simulated, so the times say nothing about a real machine. At another speed
    than 1, times are the measured ones multiplied by it; what the gateway and this machine add
    is multiplied, too, so small differences mean less the higher the speed.

    Example: gateway demo --requests 400 --speed 20 --json out.json
    """
    check_writable(json_file)
    if web and not installed():
        raise GatewayError(INSTALL)
    run = Demo(
        Plan(speed),
        requests=requests,
        concurrency=concurrency,
        console=Screen(),
        web=installed() and requests is None if web is None else web,
    )
    asyncio.run(run.run())
    if run.tally is None:
        return
    if json_file is not None:
        json_file.write_text(json.dumps(run.tally.report(speed), indent=2) + "\n")
    if run.tally.requests and not any(arm.ttft for arm in run.tally.arms.values()):
        raise GatewayError("No request was answered.")
