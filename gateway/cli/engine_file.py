"""Engine configurations as files: what one says, with what the file it extends says."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer
from pydantic import ValidationError

from gateway.errors import ConfigError
from gateway.settings.faults import Fault, in_file_order, of_validation
from gateway.settings.source import read
from gateway.vllm import EngineConfig, Version

EXTENDS = "extends"

_MERGED = ("flags", "env")
"""Mappings of which an extending file may change a part."""

EngineVersion = Annotated[
    Version | None,
    typer.Option(
        parser=lambda text: _version(text),
        metavar="VERSION",
        help="The release of vLLM, such as 0.32; by default the file's, else the newest known.",
    ),
]


def load_engine(path: Path) -> EngineConfig:
    """The engine configuration in a file.

    `extends: FILE`, relative to the file itself, begins with what that one says; what is said
    again replaces it, null takes it back, `flags` and `env` are changed entry by entry.

    Raises:
        ConfigError: with every fault, each as `path: what is wrong`.
    """
    data, faults = _read(path, ())
    try:
        config = EngineConfig.model_validate(data)
    except ValidationError as error:
        faults += of_validation(error, EngineConfig)
    if faults:
        raise ConfigError([str(fault) for fault in in_file_order(faults, data)])
    return config


def _read(path: Path, above: tuple[Path, ...]) -> tuple[dict[str, Any], list[Fault]]:
    own, faults = read(_content(path), path.name, "model and the settings of its engine")
    if "backends" in own and "model" not in own:
        raise ConfigError(
            [f"{path}: configures the gateway, not an engine: gateway check {path} reads it"]
        )
    base = own.pop(EXTENDS, None)
    if base is None:
        return own, faults
    if not isinstance(base, str):
        return own, [*faults, Fault((EXTENDS,), "must be the name of another file")]
    other = path.parent / base
    if other.resolve() in {one.resolve() for one in (*above, path)}:
        raise ConfigError([f"{EXTENDS}: {base} extends this file in turn"])
    data, more = _read(other, (*above, path))
    return _merged(data, own), faults + more


def _merged(below: dict[str, Any], above: dict[str, Any]) -> dict[str, Any]:
    result = below | above
    for name in _MERGED:
        parts = (below.get(name), above.get(name))
        if all(isinstance(part, dict) for part in parts):
            result[name] = below[name] | above[name]
    return result


def _content(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise ConfigError([f"{path}: cannot be read: {error.strerror}"]) from None


def _version(text: str) -> Version:
    try:
        return Version.parse(text)
    except ValueError as error:
        raise typer.BadParameter(str(error)) from None
