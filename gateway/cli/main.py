"""The command `gateway`.

To add a command, write a module `gateway/cli/NAME.py` with a function for Typer (or a
`typer.Typer` with sub-commands) whose docstring ends with examples, and add a line to
`COMMANDS`. The module is imported only when its command is called, so that `gateway --help` and
`gateway check` need not wait for the server's imports.

A command ends with status 0 when it did its work. It raises `ConfigError` (status 2) for a faulty
configuration, `GatewayError` or `OSError` (status 1) for a failure, `typer.BadParameter`
(status 2) for wrong usage.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from importlib import import_module
from typing import Annotated, Any, NamedTuple

import typer
from typer.core import TyperGroup

from gateway import __version__
from gateway.errors import ConfigError, GatewayError

HELP_OPTIONS = {"help_option_names": ["-h", "--help"]}
FAILED = 1
WRONG = 2


class Command(NamedTuple):
    """Where a command is (`package.module:attribute`) and the line `gateway --help` shows."""

    target: str
    help: str


COMMANDS = {
    "demo": Command("gateway.cli.demo:demo", "Try it: two simulated engines, traffic, a table."),
    "init": Command("gateway.cli.init:init", "Write a commented configuration with fresh keys."),
    "check": Command("gateway.cli.check:check", "Say in plain words what a configuration means."),
    "engine": Command("gateway.cli.engine:app", "Start vLLM from one file, in any version."),
    "serve": Command("gateway.cli.serve:serve", "Run the gateway."),
    "connect": Command("gateway.cli.connect.command:connect", "Point a client at it, and try it."),
    "models": Command("gateway.cli.models:models", "List a running gateway's models."),
    "backends": Command("gateway.cli.backends:app", "List its servers, take one out, put it back."),
    "canary": Command("gateway.cli.canary:app", "See and change how a model's traffic is split."),
    "why": Command("gateway.cli.why:why", "Explain where a request went and where its time went."),
    "doctor": Command("gateway.cli.doctor.command:doctor", "Find out why a client fails."),
    "bench": Command("gateway.cli.bench:bench", "Load arms or an engine, and time first tokens."),
    "plan": Command("gateway.cli.plan:plan", "Ask what another chunk size would do."),
    "reload": Command("gateway.cli.reload:reload", "Have it read its configuration anew."),
    "console": Command("gateway.cli.console:console", "Watch and steer it from a browser."),
    "sim": Command("gateway.cli.sim:sim", "Run a simulated vLLM server."),
}


class LazyGroup(TyperGroup):
    """Replaces the placeholder of a command by the command itself when it is called."""

    def resolve_command(self, ctx: Any, args: list[str]) -> tuple[Any, Any, list[str]]:
        name, placeholder, rest = super().resolve_command(ctx, args)
        if name is None or placeholder is None:
            return name, placeholder, rest
        return name, _loaded(name), rest


def _loaded(name: str) -> Any:
    module, _, attribute = COMMANDS[name].target.partition(":")
    found: typer.Typer | Callable[..., Any] = getattr(import_module(module), attribute)
    if isinstance(found, typer.Typer):
        return typer.main.get_command(found)
    # Markdown joins the lines of a docstring's paragraph, whatever the terminal's width.
    app = typer.Typer(
        add_completion=False, rich_markup_mode="markdown", context_settings=HELP_OPTIONS
    )
    app.command(name)(found)
    return typer.main.get_command(app)


def _show_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"gateway {__version__}")
        raise typer.Exit


def _top(
    version: Annotated[
        bool,
        typer.Option(
            "--version", callback=_show_version, is_eager=True, help="Show the version and exit."
        ),
    ] = False,
) -> None:
    """One base URL, key and model id in front of several vLLM configurations.

    Example: gateway init && gateway check gateway.yaml && gateway serve -c gateway.yaml
    """


def _app() -> typer.Typer:
    # Typer's own tracebacks could show local variables, keys among them.
    app = typer.Typer(
        cls=LazyGroup,
        no_args_is_help=True,
        context_settings=HELP_OPTIONS,
        pretty_exceptions_enable=False,
        rich_markup_mode="markdown",
    )
    app.callback()(_top)
    for name, command in COMMANDS.items():
        app.command(name, help=command.help)(_placeholder)
    return app


def _placeholder() -> None:
    raise AssertionError("a placeholder is replaced before it is called")


def main() -> None:
    """Run the command the arguments name; ends by `SystemExit` with the status."""
    try:
        _app()()
    except ConfigError as error:
        _complain(*error.faults)
        sys.exit(WRONG)
    except GatewayError as error:
        _complain(error.message)
        sys.exit(FAILED)
    except OSError as error:
        _complain(f"{error.filename}: {error.strerror}" if error.filename else str(error))
        sys.exit(FAILED)


def _complain(*lines: str) -> None:
    for line in lines:
        typer.echo(line, err=True)
