"""`gateway engine`: configurations of vLLM as commands and files that start it."""

from __future__ import annotations

from collections.abc import Callable
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from gateway.cli.engine_file import EngineVersion, load_engine
from gateway.cli.main import WRONG
from gateway.vllm import (
    Finding,
    Launch,
    Severity,
    check,
    command,
    compose,
    config_command,
    config_json,
    config_yaml,
    kubernetes,
    launch,
)

app = typer.Typer(no_args_is_help=True, add_completion=False, rich_markup_mode="markdown")


class Form(StrEnum):
    """What to render."""

    COMMAND = "command"
    CONFIG = "config"
    CONFIG_JSON = "config-json"
    COMPOSE = "compose"
    KUBERNETES = "kubernetes"


_RENDERED: dict[Form, Callable[[Launch], str]] = {
    Form.COMMAND: command,
    Form.CONFIG: config_yaml,
    Form.CONFIG_JSON: config_json,
    Form.COMPOSE: compose,
    Form.KUBERNETES: kubernetes,
}


@app.callback()
def engine() -> None:
    """Start vLLM from one file under version control, whatever its version calls its flags.

    Example: gateway engine render deploy/vllm/baseline.yaml
    """


@app.command()
def render(
    file: Annotated[Path, typer.Argument(help="The engine configuration.")],
    form: Annotated[Form, typer.Option("--for", help="What is to read it.")] = Form.COMMAND,
    engine_version: EngineVersion = None,
    one_line: Annotated[bool, typer.Option("--one-line", help="The command on one line.")] = False,
) -> None:
    """Print how to start vLLM with an engine configuration.

    For the command line, for vllm serve --config (as YAML, or as JSON, in a file called *.yaml
    all the same), for compose, or for Kubernetes. Flags have the names of the version; those it
    does not have are left out, and a comment says why.

    Ends with status 2 if vLLM would refuse what is printed, and says why on standard error: gateway
    check --engine says more.

    Example: gateway engine render deploy/vllm/baseline.yaml --for compose --engine-version 0.32

    Example: gateway engine render deploy/vllm/chunk-64.yaml --for config
    """
    if one_line and form is not Form.COMMAND:
        raise typer.BadParameter("--one-line is for --for command")
    config = load_engine(file)
    found = launch(config, engine_version)
    text = command(found, one_line=True) if one_line else _RENDERED[form](found)
    typer.echo(text, nl=False)
    if form is Form.CONFIG_JSON:
        # JSON has no comments.
        for line in (*found.remarks, f"to be read by: {config_command(found)}"):
            typer.echo(line, err=True)
    refused = [one for one in check(config, engine_version) if _refuses(one)]
    for one in refused:
        typer.echo(f"error: {one.field}: {one.reason}", err=True)
    if refused:
        raise typer.Exit(WRONG)


def _refuses(one: Finding) -> bool:
    """Whether vLLM would refuse what was printed: a flag it does not have is not in there."""
    return one.severity is Severity.ERROR and not one.field.startswith("flags.")
