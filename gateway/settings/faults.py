"""Faults of a configuration: where, what is wrong, and what is allowed."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from itertools import islice
from typing import Any

from pydantic import BaseModel, ValidationError

from gateway.settings.locations import located
from gateway.settings.tree import Settings
from gateway.vllm.kinds import FAULT

Path = tuple[str | int, ...]

_HARMLESS = re.compile(r"[a-z_]{1,40}|.{0,20}")

MOST_TOLD = 100

_AFTER_ALL = 2**31

_HEADERS: Path = ("traces", "headers")

_SENTENCES = {
    "string_type": "must be text: put it in quotes if it looks like a number or like yes and no",
    "bool_type": "must be true or false",
    "bool_parsing": "must be true or false",
    "invalid-json-value": "must be what JSON can hold: text, a number, a list, a mapping, …",
    "dict_type": "must be a mapping, NAME: value",
    "model_type": "must be a mapping, NAME: value",
    "list_type": "must be a list, such as [a, b]",
    "too_short": "is empty: name at least one",
    "string_too_short": "is empty: give a value, or leave the line out",
}

_MISSING = {
    "arms": "is missing: name the engine configurations that serve the model, each with its weight",
    "backends": "is missing: a list of names that are defined under backends",
    "model": "is missing: the model to serve, such as meta-llama/Meta-Llama-3-70B-Instruct",
    "name": "is missing: a name tells keys apart in logs and metrics",
    "url": "is missing: where the server listens, such as http://127.0.0.1:8001",
    "weight": "is missing: the arm's part of the traffic, such as 50",
}


@dataclass(frozen=True, slots=True)
class Fault:
    """One fault. `path` is where: names of settings and positions in lists."""

    path: Path
    text: str

    def __str__(self) -> str:
        return f"{dotted(self.path)}: {self.text}"


def dotted(path: Path) -> str:
    """`("keys", 0, "name")` as `keys[0].name`; what cannot be a name is cut and escaped."""
    parts = (f"[{part}]" if isinstance(part, int) else f".{shown(part)}" for part in path)
    return "".join(parts).removeprefix(".")


def shown(name: str) -> str:
    """A name as a fault shows it: on one line, and not endless."""
    text = (name or '""') if name.isprintable() else ascii(name)[1:-1]
    return text if len(text) <= 128 else text[:128] + "…"


def listed(names: Collection[str]) -> str:
    """Names for a sentence: at most ten of them."""
    more = f" and {len(names) - 10} more" if len(names) > 10 else ""
    return (", ".join(map(shown, islice(names, 10))) or "none") + more


def masked(name: str) -> str:
    """A mapping key nobody expected, cut short if it could be a secret put in the wrong place."""
    return name if _HARMLESS.fullmatch(name) else name[:6] + "…"


def told(faults: Iterable[Fault], data: Mapping[str, Any]) -> list[str]:
    """The first fault of each path, in the order in which the paths stand in the data.

    What follows from a first fault at the same place would only repeat it. Of very many, which
    have one cause as a rule, the rest is counted.
    """
    first: dict[Path, Fault] = {}
    for fault in faults:
        first.setdefault(fault.path, fault)
    orders: dict[int, dict[str, int]] = {}
    ordered = sorted(first.values(), key=lambda fault: _position(fault.path, data, orders))
    more = [f"and {len(ordered) - MOST_TOLD} more faults"] if len(ordered) > MOST_TOLD else []
    return [str(fault) for fault in ordered[:MOST_TOLD]] + more


def _position(path: Path, data: Any, orders: dict[int, dict[str, int]]) -> list[int]:
    """Args:
    orders: the places of names in the mappings that were met, by the mapping's id.
    """
    places: list[int] = []
    for part in path:
        if isinstance(data, dict) and part in data:
            if id(data) not in orders:
                orders[id(data)] = {name: place for place, name in enumerate(data)}
            places.append(orders[id(data)][str(part)])
            data = data[part]
        elif isinstance(data, list) and isinstance(part, int) and part < len(data):
            places.append(part)
            data = data[part]
        else:  # what is missing, or unknown, comes after what is there
            return [*places, _AFTER_ALL]
    return places


def of_validation(error: ValidationError, root: type[BaseModel] = Settings) -> Iterator[Fault]:
    """The faults pydantic found in a `root`, in our words. Values are never repeated."""
    for one in error.errors(include_input=False, include_url=False):
        kind, loc = one["type"], one["loc"]
        if kind == "extra_forbidden":
            yield _unknown_key(*located(loc, root))
            continue
        path, _ = located(loc[:-1] if loc[-1:] == ("[key]",) else loc, root)
        if path[:-1] == _HEADERS:
            # Name and value are easily swapped.
            path = (*_HEADERS, masked(str(path[-1])))
        yield Fault(path, _sentence(kind, path, one.get("ctx", {}), one["msg"]))


def _sentence(kind: str, path: Path, context: dict[str, Any], message: str) -> str:
    if kind == FAULT:
        return message
    if kind == "missing":
        return _MISSING.get(str(path[-1]), "is missing")
    if kind == "literal_error":
        return f"must be one of {context['expected']}".replace("'", "")
    return _SENTENCES.get(kind, message[:1].lower() + message[1:])


def _unknown_key(path: Path, section: type[BaseModel]) -> Fault:
    name = str(path[-1])
    allowed = list(section.model_fields)
    near = get_close_matches(name, allowed, n=1)
    # A model that is not indented stands beside models, not below.
    apart = "; indent it if it belongs to a name above." if len(path) == 1 else "."
    hint = f", did you mean {near[0]}?" if near else apart
    return Fault(
        (*path[:-1], masked(name)), f"unknown key{hint} Allowed here: {', '.join(allowed)}"
    )
