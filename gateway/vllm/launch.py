"""From an engine configuration to the flags that a given version of vLLM takes."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from math import prod

from pydantic import JsonValue

from gateway.vllm.config import FIELD_FLAGS, EngineConfig
from gateway.vllm.flags import Fate, Flag, Kind, canonical, flag
from gateway.vllm.version import NEWEST, Version

_JSON_LISTS = frozenset({"allowed-headers", "allowed-methods", "allowed-origins"})
"""Flags that take a list as one JSON value; all others take its items one after the other."""

_PARALLELISM = frozenset({"tensor-parallel-size", "pipeline-parallel-size", "data-parallel-size"})

_REASONING_BY_ITSELF = Version.parse("0.9")
"""Before it `--reasoning-parser` needed `--enable-reasoning` beside it."""


@dataclass(frozen=True, slots=True)
class Argument:
    """A flag with its value: true and false for those that take none."""

    name: str
    value: JsonValue
    kind: Kind

    def words(self, *, joined: bool) -> list[str]:
        """As words of a command line, unquoted; `joined`: `--name=value` as one word.

        Empty for a switch that is off.
        """
        name = f"--{self.name}"
        match self.value:
            case True:
                return [name]
            case False:
                return {
                    Kind.BOOLEAN: [f"--no-{self.name}"],
                    Kind.STORE_BOOLEAN: [f"{name}=False"],
                }.get(self.kind, [])
            case list() if self.name not in _JSON_LISTS:
                return [name, *map(_text, self.value)]
        text = _text(self.value)
        # argparse takes a word that begins with a dash for the next flag.
        return [f"{name}={text}"] if joined or text.startswith("-") else [name, text]

    @property
    def plain(self) -> JsonValue:
        """The value as a file can hold it: what vLLM takes as JSON is text."""
        if isinstance(self.value, dict) or self.name in _JSON_LISTS:
            return _text(self.value)
        return self.value


@dataclass(frozen=True, slots=True)
class Remark:
    """A flag that was left out, or is written otherwise than asked for, and why."""

    flag: str
    text: str

    def __str__(self) -> str:
        return f"{self.flag} {self.text}"


@dataclass(frozen=True, slots=True)
class Launch:
    """How to start `vllm serve` in one version."""

    config: EngineConfig
    version: Version
    arguments: tuple[Argument, ...]
    remarks: tuple[Remark, ...]

    @property
    def gpus(self) -> int:
        """The GPUs one server takes, with the kinds of parallelism that the version has."""
        sizes = (one.value for one in self.arguments if one.name in _PARALLELISM)
        return prod(size for size in sizes if isinstance(size, int))


def launch(config: EngineConfig, version: Version | None = None) -> Launch:
    """The flags for a version: the one given, else the configuration's, else the newest known.

    Renamed flags are renamed, those the version does not have are left out with a remark.
    """
    target = version or config.engine_version or NEWEST
    arguments: list[Argument] = []
    remarks: list[Remark] = []
    for name, value in _wanted(config, target):
        found = flag(name, target)
        if found.fate is Fate.UNKNOWN and target > NEWEST:
            found = Flag(found.name, Fate.PRESENT, _likely_kind(value))
        if found.fate is not Fate.PRESENT:
            remarks.append(Remark(f"--{found.name}", f"is left out: {absence(found, target)}"))
            continue
        if found.name != canonical(name):
            remarks.append(Remark(f"--{canonical(name)}", f"is written --{found.name}"))
        arguments.append(Argument(found.name, _positive(name, value), found.kind))
    return Launch(config, target, tuple(arguments), tuple(remarks))


def absence(found: Flag, version: Version) -> str:
    """Why a version does not have a flag, and what takes its place where that is known."""
    instead = f" ({found.instead})" if found.instead else ""
    match found.fate:
        case Fate.REMOVED:
            return f"removed after {found.release}{instead}"
        case Fate.NOT_YET:
            return f"not in vLLM {version}, first seen in {found.release}"
        case _:
            near = f", did you mean {found.instead}?" if found.instead else ""
            return f"no flag of vLLM {version}{near}"


def _wanted(config: EngineConfig, version: Version) -> Iterator[tuple[str, JsonValue]]:
    """What the configuration asks for, in the order of its settings, then further flags."""
    for setting, name in FIELD_FLAGS.items():
        value = getattr(config, setting)
        if value is None:
            continue
        if setting == "tool_call_parser":
            yield "enable-auto-tool-choice", True
        if setting == "reasoning_parser" and version < _REASONING_BY_ITSELF:
            yield "enable-reasoning", True
        yield name, value
    yield from config.flags.items()


def _positive(name: str, value: JsonValue) -> JsonValue:
    """`no-x: true` means `x: false`."""
    plain = name.lstrip("-").replace("_", "-")
    negated = plain != canonical(name) and isinstance(value, bool)
    return not value if negated else value


def _likely_kind(value: JsonValue) -> Kind:
    return Kind.BOOLEAN if isinstance(value, bool) else Kind.VALUE


def _text(value: JsonValue) -> str:
    return value if isinstance(value, str) else json.dumps(value)
