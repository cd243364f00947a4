"""`${NAME}` and `${file:/path}` inside the strings of a configuration; `$${` stands for `${`."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path as FilePath
from typing import Any

from gateway.settings.faults import Fault, Path, shown
from gateway.settings.files import read_file

_REFERENCE = re.compile(r"\$\$\{|\$\{(?P<what>[^{}]*)\}|\$\{")
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")

LARGEST_VALUE = 65_536
"""Bytes of a file that `${file:…}` names: it holds one value, a secret as a rule."""


class Substitution:
    """Replaces references in a tree of plain data and gathers what is wrong in `faults`.

    Args:
        env: the environment variables.
        directory: where relative file paths start: the configuration's own directory.
    """

    def __init__(self, env: Mapping[str, str], directory: FilePath) -> None:
        self._env = env
        self._directory = directory
        self.faults: list[Fault] = []

    def apply(self, data: Any, path: Path = ()) -> Any:
        """The data with references replaced."""
        if isinstance(data, str):
            return self._text(data, path)
        if isinstance(data, list):
            return [self.apply(item, (*path, place)) for place, item in enumerate(data)]
        if isinstance(data, dict):
            return {name: self.apply(value, (*path, name)) for name, value in data.items()}
        return data

    def _text(self, text: str, path: Path) -> str:
        def replace(match: re.Match[str]) -> str:
            if match.group() == "$${":
                return "${"
            value = self._value(match.group("what"))
            if isinstance(value, Fault):
                self.faults.append(Fault(path, value.text))
                return ""
            return value

        return _REFERENCE.sub(replace, text)

    def _value(self, what: str | None) -> str | Fault:
        if what is not None and what.startswith("file:"):
            return self._file(what.removeprefix("file:"))
        if what is None or not _VARIABLE.fullmatch(what):
            return Fault((), "a reference is ${NAME} or ${file:/path}; write $${ for a plain ${")
        if what not in self._env:
            return Fault((), f"the environment variable {what} is not set")
        return self._env[what]

    def _file(self, name: str) -> str | Fault:
        try:
            text = read_file(self._directory / name, LARGEST_VALUE).decode()
        except OSError as error:
            return Fault((), f"cannot read the file {shown(name)}: {error.strerror}")
        except UnicodeDecodeError:
            return Fault((), f"the file {shown(name)} is not UTF-8 text")
        # Secrets are files of one line, and most editors end a line.
        return text.rstrip("\r\n")
