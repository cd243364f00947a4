"""The command itself: its names, its help, and the status it ends with."""

from __future__ import annotations

import shlex
import socket
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
import typer

from gateway import __version__
from gateway.cli.main import COMMANDS, Command, main
from gateway.clients.known import CLIENTS
from gateway.errors import ConfigError, GatewayError
from tests.cli.conftest import Run

ROOT = Path(__file__).parents[2]
SERVER_MODULES = ("uvicorn", "fastapi", "httpx", "sqlalchemy", "gateway.app")


def target(name: str) -> Any:
    module, _, attribute = COMMANDS[name].target.partition(":")
    return getattr(import_module(module), attribute)


def commands(name: str) -> Iterator[tuple[str, Any]]:
    """(`canary set`, what Typer makes of it) of a command, or of each one in its group."""
    found = target(name)
    if isinstance(found, typer.Typer):
        group: Any = typer.main.get_command(found)
        yield from ((f"{name} {each}", command) for each, command in group.commands.items())
        if group.callback is not None:
            yield name, group
    else:
        app = typer.Typer(add_completion=False)
        app.command(name)(found)
        yield name, typer.main.get_command(app)


LEAVES = [leaf for name in COMMANDS for leaf in commands(name)]


@pytest.mark.parametrize("words", [("--version",), ("--help",), ()])
def test_python_m_gateway(words: tuple[str, ...]) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "gateway", *words], cwd=ROOT, capture_output=True, text=True
    )
    assert done.returncode == (0 if words else 2)
    if words == ("--version",):
        assert (done.stdout, done.stderr) == (f"gateway {__version__}\n", "")
    else:  # without a word it helps, too
        assert all(f" {name} " in done.stdout for name in COMMANDS)


def test_the_installed_command_is_the_same() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    module, _, attribute = project["scripts"]["gateway"].partition(":")
    assert getattr(import_module(module), attribute) is main


@pytest.mark.parametrize(("name", "command"), LEAVES, ids=[name for name, _ in LEAVES])
def test_every_help_holds_an_example_that_can_be_typed(
    run: Run, monkeypatch: pytest.MonkeyPatch, name: str, command: Any
) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    result = run(*name.split(), "--help")
    assert result.status == 0
    examples = [line for line in result.out.splitlines() if "Example: gateway " in line]
    assert examples
    for example in examples:
        words = shlex.split(example.partition("Example: gateway ")[2])
        assert words[: len(name.split())] == name.split()
        # Raises what a wrong name of an option or a missing argument raises.
        command.make_context(name, words[len(name.split()) :])


@pytest.mark.parametrize("name", COMMANDS)
def test_the_list_of_commands_cuts_no_line(
    run: Run, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    assert COMMANDS[name].help in run("--help").out


@pytest.mark.parametrize("name", [name for name, _ in LEAVES])
def test_help_cuts_no_name_off_at_80_columns(
    run: Run, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    assert "…" not in run(*name.split(), "--help").out


def test_help_names_every_client_in_whole_at_80_columns(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    words = run("connect", "--help").out.replace(",", " ").replace(". ", " ").split()
    assert set(CLIENTS) <= set(words)


def test_help_waits_for_no_server() -> None:
    """Each of these must answer at once, so it may not import what serves."""
    for words in (["--help"], ["--version"], ["init", "--help"], ["check", "--help"]):
        code = (
            "import sys\n"
            "from gateway.cli.main import main\n"
            f"sys.argv = ['gateway', *{words!r}]\n"
            "try: main()\n"
            "except SystemExit as end: assert not end.code, end.code\n"
            f"print(*(name for name in {SERVER_MODULES!r} if name in sys.modules), file=sys.stderr)"
        )
        done = subprocess.run(
            [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True
        )
        assert (done.returncode, done.stderr.strip()) == (0, ""), words


@pytest.mark.parametrize(
    ("error", "status", "said"),
    [
        (None, 0, ""),
        (GatewayError("It is not running."), 1, "It is not running.\n"),
        (OSError("no place left"), 1, "no place left\n"),
        (PermissionError(13, "Permission denied", "/x"), 1, "/x: Permission denied\n"),
        (ConfigError(["a: is wrong", "b: is wrong"]), 2, "a: is wrong\nb: is wrong\n"),
    ],
)
def test_a_command_s_end_is_a_status_and_a_sentence(
    run: Run, monkeypatch: pytest.MonkeyPatch, error: Exception | None, status: int, said: str
) -> None:
    def command() -> None:
        if error is not None:
            raise error

    monkeypatch.setattr(sys.modules[__name__], "command", command, raising=False)
    monkeypatch.setitem(COMMANDS, "check", Command(f"{__name__}:command", ""))
    assert run("check") == (status, "", said)


@pytest.mark.parametrize(
    "words",
    [["nonsense"], ["why"], ["serve", "--nonsense"], ["sim", "--port", "web"], ["canary"]],
)
def test_wrong_usage_is_status_2(run: Run, words: list[str]) -> None:
    result = run(*words)
    assert result.status == 2
    assert "Usage: " in result.out + result.err
    assert "Traceback" not in result.err


@pytest.mark.parametrize("name", ["host", "port"])
def test_serve_says_where_its_address_is_set(
    run: Run, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    result = run("serve", f"--{name}", "8080")
    assert result.status == 2
    assert f"set server.{name} in the configuration, or GATEWAY_SERVER__" in result.err
    assert f"--{name}" not in run("serve", "--help").out


@pytest.mark.parametrize(("group", "command"), [("canary", "status"), ("engine", "render")])
def test_a_group_alone_lists_its_commands(run: Run, group: str, command: str) -> None:
    result = run(group)
    assert f"│ {command} " in result.out + result.err


def test_a_faulty_configuration_is_status_2_for_each_who_reads_it(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "gateway.yaml"
    path.write_text("models: {}\nnonsense: 1\n")
    faults = run("check", str(path))
    assert run("serve", "-c", str(path)) == faults
    assert (faults.status, faults.out) == (2, "")
    assert [line.partition(":")[0] for line in faults.err.splitlines()] == [
        "models",
        "nonsense",
        "backends",
        "keys",
    ]


@pytest.mark.parametrize("command", ["check", "serve"])
def test_a_file_is_named_with_or_without_its_option(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: str
) -> None:
    path = tmp_path / "other.yaml"
    for words in ((str(path),), ("-c", str(path)), ("--config", str(path))):
        assert f"{path}: no such file" in run(command, *words).err
    monkeypatch.chdir(tmp_path)
    assert run(command).err.startswith("gateway.yaml: no such file")
    twice = run(command, str(path), "-c", str(path))
    assert twice.status == 2 and "give the configuration once" in twice.err


@pytest.mark.parametrize("host", ["192.0.2.1", ":::"])
def test_a_host_that_is_none_of_this_machine(run: Run, host: str) -> None:
    result = run("sim", "--port", "0", "--host", host)
    assert (result.status, result.out) == (1, "")
    assert result.err.endswith(
        ". Set --host to an address of this machine, or to 0.0.0.0 for all of them.\n"
    )


def test_a_failure_is_status_1(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        result = run("sim", "--port", str(port))
    assert (result.status, result.out) == (1, "")
    assert result.err == (
        f"cannot listen on 127.0.0.1:{port}: Address already in use. Choose another with --port.\n"
    )
    monkeypatch.setenv("GATEWAY_ADMIN_KEY", "x")
    result = run("models", "--url", f"http://127.0.0.1:{port}")  # nobody listens there any more
    assert (result.status, result.out) == (1, "")
    assert result.err.startswith(f"No gateway answers at http://127.0.0.1:{port}.")
