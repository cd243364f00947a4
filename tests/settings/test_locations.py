"""Faults are where a user finds them in the file: no path holds a word of pydantic's own."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from pydantic import BaseModel, ValidationError

from gateway.settings import Settings
from gateway.settings.faults import Path, dotted, of_validation
from gateway.vllm import EngineConfig

BINARY = b"what YAML's !!binary gives"
ODD: list[Any] = [
    *(5, -1, True, "", "a\nb", float("nan"), BINARY, {1, 2}),
    *([], [5], ["a", None], ["any", BINARY], [["a"]], [{"list": 1}]),
    *({}, {"a": 1}, {"a": {"b": 1}}, {"a b": "x"}, {"<list>": [1]}, {"word": {"<word>": BINARY}}),
    *({"a": BINARY}, {"a": [BINARY]}, {"a": {"b": [0, {"c": BINARY}]}}, {"list": {"dict": BINARY}}),
]

ENGINE: dict[str, Any] = {"model": "m"}
WHOLE: dict[str, Any] = {
    "models": {"m": {"arms": {"a": {"weight": 1, "backends": ["b"]}}, "experiment": {}}},
    "backends": {"b": {"url": "http://b:8001", "engine": {}}},
    "keys": [{"name": "dev", "key_sha256": "0" * 64}],
    **{name: {} for name in ("server", "admin", "metrics", "traces", "timeouts", "admission")},
    "rollout": {},
}
SECTIONS: list[tuple[type[BaseModel], dict[str, Any], Path]] = [
    (EngineConfig, ENGINE, ()),
    (Settings, WHOLE, ()),
    *((Settings, WHOLE, (name,)) for name in WHOLE if name not in ("models", "backends", "keys")),
    (Settings, WHOLE, ("models", "m")),
    (Settings, WHOLE, ("models", "m", "experiment")),
    (Settings, WHOLE, ("models", "m", "arms", "a")),
    (Settings, WHOLE, ("backends", "b")),
    (Settings, WHOLE, ("backends", "b", "engine")),
    (Settings, WHOLE, ("keys", 0)),
]


def replaced(data: Any, path: Path, value: Any) -> Any:
    """A copy with another value at a path."""
    if not path:
        return value
    if isinstance(data, list):
        return [
            replaced(one, path[1:], value) if n == path[0] else one for n, one in enumerate(data)
        ]
    return {**data, path[0]: replaced(data.get(path[0]), path[1:], value)}


def places(data: Any, path: Path = ()) -> Iterator[Path]:
    """The path of everything in a file."""
    yield path
    if isinstance(data, dict):
        for name, value in data.items():
            yield from places(value, (*path, name))
    if isinstance(data, list | set):
        for place, value in enumerate(data):
            yield from places(value, (*path, place))


def faults(root: type[BaseModel], data: dict[str, Any]) -> list[tuple[Path, str]]:
    try:
        root.model_validate(data)
    except ValidationError as error:
        return [(fault.path, fault.text) for fault in of_validation(error, root)]
    return []


def section(root: type[BaseModel], path: Path) -> dict[str, Any]:
    """The names that a section takes, from the fault about one it does not take."""
    data = replaced(WHOLE if root is Settings else ENGINE, (*path, "zzz"), 1)
    ((_, text),) = [one for one in faults(root, data) if one[0] == (*path, "zzz")]
    return dict.fromkeys(text.split("Allowed here: ")[1].split(", "))


@pytest.mark.parametrize(("root", "good", "path"), SECTIONS, ids=lambda one: str(one)[:40])
def test_every_fault_of_every_setting_is_in_the_file(
    root: type[BaseModel], good: dict[str, Any], path: Path
) -> None:
    names = section(root, path)
    assert names
    found = 0
    for name in names:
        for odd in ODD:
            data = replaced(good, (*path, name), odd)
            # What is missing is told at its own name, below what is there.
            there = set(places(data))
            for at, text in faults(root, data):
                assert at in there or (text.startswith("is missing") and at[:-1] in there), (
                    at,
                    text,
                )
                assert at[: len(path) + 1] == (*path, name), (at, text)
                assert not any(word in text for word in ("nput", "validation", "function", "list["))
                found += 1
    assert found >= len(names)


FIELDS: list[tuple[type[BaseModel], str, Any, list[str]]] = [
    (EngineConfig, "model", "", ["model: is empty: give a value, or leave the line out"]),
    (EngineConfig, "served_model_name", ["a", ""], ["served_model_name[1]: is empty"]),
    (EngineConfig, "served_model_name", 70, ["served_model_name: must be a name, or a list of "]),
    (EngineConfig, "served_model_name", "a\nb", ["served_model_name: must be one line of text"]),
    (EngineConfig, "served_model_name", ["a", 7], ["served_model_name[1]: must be text"]),
    (EngineConfig, "served_model_name", ["a\nb"], ["served_model_name[0]: must be one line"]),
    (EngineConfig, "served_model_name", [], ["served_model_name: is empty: name at least one"]),
    (EngineConfig, "flags", {"x": BINARY}, ["flags.x: must be what JSON can hold"]),
    (EngineConfig, "flags", {"x": [1, BINARY]}, ["flags.x[1]: must be what JSON can hold"]),
    (EngineConfig, "flags", {"x": {"y": [BINARY]}}, ["flags.x.y[0]: must be what JSON can hold"]),
    (EngineConfig, "flags", {"x": {"list": BINARY}}, ["flags.x.list: must be what JSON can hold"]),
    (EngineConfig, "flags", {"a b": 1}, ["flags.a b: must be the name of a flag"]),
    (EngineConfig, "env", {"A": 1}, ["env.A: must be text"]),
    (EngineConfig, "env", {"A B": "x"}, ["env.A B: must be the name of an environment variable"]),
    (Settings, "backends/b/apis", "some", ["backends.b.apis: must be auto, or a list of chat"]),
    (Settings, "backends/b/apis", ["x"], ["backends.b.apis[0]: must be one of chat"]),
    (Settings, "backends/b/apis", [], ["backends.b.apis: is empty"]),
    (Settings, "keys/0/arms", 1, ["keys[0].arms: must be any, none, or a list of arms"]),
    (Settings, "keys/0/arms", ["a", "a b"], ["keys[0].arms[1]: a name has 1 to 64 characters"]),
]


@pytest.mark.parametrize(("root", "path", "value", "lines"), FIELDS)
def test_where_and_what(root: type[BaseModel], path: str, value: Any, lines: list[str]) -> None:
    place = tuple(int(part) if part.isdigit() else part for part in path.split("/"))
    data = replaced(WHOLE if root is Settings else ENGINE, place, value)

    found = [f"{dotted(at)}: {text}" for at, text in faults(root, data)]

    assert len(found) == len(lines)
    assert all(one.startswith(line) for one, line in zip(found, lines, strict=True)), found
