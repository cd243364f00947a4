"""Engine configurations as files: what one says, with what the file it extends says."""

from __future__ import annotations

from functools import reduce
from os.path import realpath
from pathlib import Path
from typing import Annotated, Any

import typer
from pydantic import ValidationError

from gateway.errors import ConfigError
from gateway.settings.faults import Fault, of_validation, shown, told
from gateway.settings.files import read_file
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
    data, faults = _read(path)
    try:
        config = EngineConfig.model_validate(data)
    except ValidationError as error:
        faults += of_validation(error, EngineConfig)
    if faults:
        raise ConfigError(told(faults, data))
    return config


def _read(path: Path) -> tuple[dict[str, Any], list[Fault]]:
    """What a file says together with all that it extends, and the faults of their texts."""
    layers: list[dict[str, Any]] = []
    faults: list[Fault] = []
    seen: set[str] = set()
    while True:
        seen.add(realpath(path))
        own, more = read(_content(path), path.name, "model and the settings of its engine")
        _check_kind(own, path)
        base = own.pop(EXTENDS, None)
        layers.append(own)
        faults += more
        if base is None:
            break
        if not isinstance(base, str) or not base.isprintable() or not base:
            faults.append(Fault((EXTENDS,), "must be the name of another file"))
            break
        path = path.parent / base
        if realpath(path) in seen:
            raise ConfigError([f"{EXTENDS}: {shown(base)} extends this file in turn"])
    return _without_nulls(reduce(_merged, reversed(layers))), faults


def _check_kind(data: dict[str, Any], path: Path) -> None:
    if "backends" in data and "model" not in data:
        raise ConfigError(
            [f"{path}: configures the gateway, not an engine: gateway check {path} reads it"]
        )


def _merged(below: dict[str, Any], above: dict[str, Any]) -> dict[str, Any]:
    result = below | above
    for name in _MERGED:
        parts = (below.get(name), above.get(name))
        if all(isinstance(part, dict) for part in parts):
            result[name] = below[name] | above[name]
    return result


def _without_nulls(data: dict[str, Any]) -> dict[str, Any]:
    """Entries that were taken back are gone; what else is null is the model's to judge."""
    for name in _MERGED:
        part = data.get(name)
        if isinstance(part, dict):
            data[name] = {key: value for key, value in part.items() if value is not None}
    return data


def _content(path: Path) -> bytes:
    try:
        return read_file(path)
    except OSError as error:
        raise ConfigError([f"{path}: cannot be read: {error.strerror}"]) from None


def _version(text: str) -> Version:
    try:
        return Version.parse(text)
    except ValueError as error:
        raise typer.BadParameter(str(error)) from None
