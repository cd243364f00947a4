"""A launch as a shell command, and as the file that `vllm serve --config` reads."""

from __future__ import annotations

import json
import re
import shlex
from typing import Any

import yaml
from pydantic import JsonValue

from gateway.vllm.flags import Kind
from gateway.vllm.launch import Argument, Launch
from gateway.vllm.version import Version

_REFERENCE = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)\}")

_READS_BOOLEANS = Version.parse("0.7")
"""0.6.3 turns `x: true` into `--x True`, which a switch refuses; 0.7.3 into `--x`."""

_READS_MODEL = Version.parse("0.8")
"""0.7.3 wants the model on the command line, 0.8.5 takes it from the file."""

_READS_LISTS = Version.parse("0.10")
"""0.9.2 turns a list into the text of one, 0.10.2 into its items."""


class _Dumper(yaml.SafeDumper):
    """Writes lists indented, and what occurs twice in full, as people do."""

    def ignore_aliases(self, data: Any) -> bool:
        return True

    def increase_indent(self, flow: bool = False, indentless: bool = False) -> None:
        super().increase_indent(flow, False)


def as_yaml(content: Any) -> str:
    """YAML for people: in the order given, a value to a line."""
    return yaml.dump(content, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=1000)


def referenced(value: str) -> str | None:
    """NAME of an environment variable's value `${NAME}`, None of any other."""
    found = _REFERENCE.fullmatch(value)
    return found[1] if found else None


def comments(launch: Launch) -> list[str]:
    """What a reader of the rendered text should know, as comments for a shell or YAML."""
    return [f"# {line}" for line in (f"For vLLM {launch.version}.", *map(str, launch.remarks))]


def command(launch: Launch, *, one_line: bool = False) -> str:
    """`vllm serve` with everything it takes, for a POSIX shell, a flag to a line."""
    variables = [f"{name}={_shell_value(value)}" for name, value in launch.config.env.items()]
    parts = [
        *variables,
        shlex.join(["vllm", "serve", launch.config.model]),
        *(shlex.join(words) for one in launch.arguments if (words := one.words(joined=False))),
    ]
    separator = " " if one_line else " \\\n  "
    return "".join(f"{line}\n" for line in (*comments(launch), separator.join(parts)))


def config_yaml(launch: Launch) -> str:
    """The file for `vllm serve --config`, which has to be called `*.yaml` or `*.yml`.

    Begins with the command that reads it. Source: `load_config_file` of 0.32.0,
    `vllm/utils/argparse_utils.py`, and its forerunners in `vllm/utils.py`.
    """
    # A value may have several lines, each of which has to stay within the comment.
    told = [f"# {line}" for line in config_command(launch).splitlines()]
    return "".join(f"{line}\n" for line in (*comments(launch), *told)) + as_yaml(_values(launch))


def config_json(launch: Launch) -> str:
    """The same as JSON, which YAML includes: vLLM reads it if the file's name ends with .yaml."""
    return json.dumps(_values(launch), indent=2, ensure_ascii=False) + "\n"


def config_command(launch: Launch) -> str:
    """The command that reads the file, with what the version cannot read from one."""
    beside = [
        word
        for one in launch.arguments
        if not _fits_in_file(one, launch.version)
        for word in one.words(joined=False)
    ]
    model = [] if launch.version >= _READS_MODEL else [launch.config.model]
    variables = [f"{name}={_shell_value(value)}" for name, value in launch.config.env.items()]
    words = shlex.join(["vllm", "serve", *model, "--config", "FILE.yaml", *beside])
    return " ".join([*variables, words])


def _shell_value(value: str) -> str:
    name = referenced(value)
    # The shell ends with an error where the variable is not set.
    return f'"${{{name}:?}}"' if name else shlex.quote(value)


def _values(launch: Launch) -> dict[str, JsonValue]:
    values: dict[str, JsonValue] = {}
    if launch.version >= _READS_MODEL:
        values["model"] = launch.config.model
    for one in launch.arguments:
        if _fits_in_file(one, launch.version) and one.words(joined=False):
            name, value = _entry(one)
            values[name] = value
    return values


def _entry(one: Argument) -> tuple[str, JsonValue]:
    # `x: false` is read as --no-x by 0.28 and newer only, and dropped without a word before;
    # `no-x: true` is read by all.
    if one.value is False and one.kind is Kind.BOOLEAN:
        return f"no-{one.name}", True
    if one.kind is Kind.STORE_BOOLEAN:
        # 0.7.3 looks for it by this name, and drops a `false` under the other.
        return one.name.replace("-", "_"), one.value
    value = one.plain
    if isinstance(value, list) and len(value) == 1:
        return one.name, value[0]
    return one.name, value


def _fits_in_file(one: Argument, version: Version) -> bool:
    if isinstance(one.plain, list) and len(one.plain) > 1:
        return version >= _READS_LISTS
    if str(one.plain).startswith("-"):
        # It would be taken for the next flag.
        return False
    if one.value is True and one.kind is not Kind.STORE_BOOLEAN:
        return version >= _READS_BOOLEANS
    return True
