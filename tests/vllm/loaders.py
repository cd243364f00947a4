"""How releases read the file of `--config`, retold: `{key: value}` to words of a command line."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

from gateway.vllm import Kind, Version, flag


def loader_0_6(values: Mapping[str, Any]) -> list[str]:
    """0.6.3: every value as text."""
    return [word for key, value in values.items() for word in (f"--{key}", str(value))]


def loader_0_7(values: Mapping[str, Any]) -> list[str]:
    """0.7.3 to 0.9.2: true is the bare flag, false is dropped, except for one kind of flag.

    That kind is looked up by the name with underscores.
    """
    words: list[str] = []
    for key, value in values.items():
        stores = "_" in key and _kind(key, "0.7.3") is Kind.STORE_BOOLEAN
        if isinstance(value, bool) and not stores:
            words += [f"--{key}"] * value
        else:
            words += [f"--{key}", str(value)]
    return words


def loader_0_10(values: Mapping[str, Any]) -> list[str]:
    """0.10.2: lists, too."""
    words: list[str] = []
    for key, value in values.items():
        if isinstance(value, list):
            words += [f"--{key}", *map(str, value)]
        else:
            words += loader_0_7({key: value})
    return words


def loader_0_32(values: Mapping[str, Any]) -> list[str]:
    """0.28 and newer: false is the negative flag where there is one; mappings are JSON."""
    words: list[str] = []
    for key, value in values.items():
        if value is False and _kind(key, "0.32") is Kind.BOOLEAN:
            words.append(f"--no-{key}")
        elif isinstance(value, dict):
            words += [f"--{key}", json.dumps(value)]
        else:
            words += loader_0_10({key: value})
    return words


LOADERS: dict[str, Callable[[Mapping[str, Any]], list[str]]] = {
    "0.6.3": loader_0_6,
    "0.7.3": loader_0_7,
    "0.9.2": loader_0_7,
    "0.10.2": loader_0_10,
    "0.32": loader_0_32,
}


def meant(words: list[str], version: str) -> dict[str, Any]:
    """What `vllm serve` of a version takes words for; an impossible command line is an error."""
    found: dict[str, Any] = {}
    rest = list(words)
    while rest:
        name, sign, joined = rest.pop(0).removeprefix("--").partition("=")
        values = [joined] if sign else []
        while rest and not rest[0].startswith("--"):
            values.append(rest.pop(0))
        plain = flag(name, Version.parse(version)).name
        negated = name.replace("_", "-") != plain
        kind = _kind(name, version)
        if kind is Kind.VALUE:
            assert values and not negated, name
            found[plain] = values
        elif kind is Kind.STORE_BOOLEAN:
            assert values in ([], ["True"], ["False"]), (name, values)
            found[plain] = values != ["False"]
        else:
            assert not values, (name, values)
            assert not negated or kind is Kind.BOOLEAN, name
            found[plain] = not negated
    return found


def _kind(name: str, version: str) -> Kind:
    return flag(name, Version.parse(version)).kind
