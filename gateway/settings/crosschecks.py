"""Checks that compare values: an arm's backends with the backends, keys with each other, …

They work on the plain data, not on the tree, so that they speak even where a single value is
wrong; what has the wrong type is left to pydantic.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from gateway.settings.faults import Fault, Path, dotted, listed
from gateway.settings.strength import ADVICE, weakness

Data = Mapping[str, Any]


def faults(data: Data) -> Iterator[Fault]:
    """Every fault between values."""
    for check in _CHECKS:
        yield from check(data)


def _mapping(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def _number(value: Any) -> float | None:
    try:
        return float(value)
    except (TypeError, ValueError, OverflowError):
        return None


def _models(data: Data) -> dict[str, dict[str, Any]]:
    return {name: _mapping(model) for name, model in _mapping(data.get("models")).items()}


def _arms(data: Data) -> Iterator[tuple[str, str, dict[str, Any]]]:
    """(model, arm, the arm's mapping) of every arm."""
    for model_name, model in _models(data).items():
        for arm_name, arm in _mapping(model.get("arms")).items():
            yield model_name, arm_name, _mapping(arm)


def _keys(data: Data) -> Iterator[tuple[int, dict[str, Any]]]:
    for place, key in enumerate(_list(data.get("keys"))):
        if isinstance(key, dict):
            yield place, key


def _what_must_be_there(data: Data) -> Iterator[Fault]:
    missing = {
        "models": "is empty: name at least one model and its arms",
        "backends": "is empty: name at least one server and its url",
        "keys": f"is empty: without a key nobody can ask; {ADVICE}",
    }
    for section, sentence in missing.items():
        if data.get(section) in (None, {}, []):
            yield Fault((section,), sentence)


def _backends_of_arms(data: Data) -> Iterator[Fault]:
    defined = _mapping(data.get("backends"))
    owners: dict[str, tuple[str, str]] = {}
    for model, arm, settings in _arms(data):
        for place, backend in enumerate(_list(settings.get("backends"))):
            if not isinstance(backend, str):
                continue
            path: Path = ("models", model, "arms", arm, "backends", place)
            if backend not in defined:
                yield Fault(path, f"names no backend; defined under backends: {listed(defined)}")
                continue
            owner = owners.setdefault(backend, (model, arm))
            if owner != (model, arm):
                yield Fault(
                    path,
                    f"backend {backend} serves arm {owner[1]} of {owner[0]} already: a backend "
                    "belongs to exactly one arm",
                )


def _weights(data: Data) -> Iterator[Fault]:
    for name, model in _models(data).items():
        arms = _mapping(model.get("arms"))
        weights = [_number(_mapping(arm).get("weight")) for arm in arms.values()]
        if weights and all(weight == 0 for weight in weights):
            yield Fault(("models", name, "arms"), "every weight is 0: at least one must be above 0")


def _controls(data: Data) -> Iterator[Fault]:
    first: dict[str, str] = {}
    for model, arm, settings in _arms(data):
        if settings.get("role") == "control" and first.setdefault(model, arm) != arm:
            yield Fault(
                ("models", model, "arms", arm, "role"),
                f"arm {first[model]} is the control already: a model has one",
            )


def _aliases(data: Data) -> Iterator[Fault]:
    models = _models(data)
    owners: dict[str, str] = {}
    for name, model in models.items():
        for place, alias in enumerate(_list(model.get("aliases"))):
            if not isinstance(alias, str):
                continue
            path: Path = ("models", name, "aliases", place)
            if alias in models:
                yield Fault(path, f"{alias} is a model: an alias must be a name of its own")
            elif alias in owners:
                yield Fault(path, f"{alias} is an alias of {owners[alias]} already")
            owners.setdefault(alias, name)


def _key_material(data: Data) -> Iterator[Fault]:
    for place, key in _keys(data):
        path: Path = ("keys", place)
        if key.get("key") is None and key.get("key_sha256") is None:
            yield Fault(path, f"has neither key nor key_sha256: give one of them; {ADVICE}")
        if key.get("key") is not None and key.get("key_sha256") is not None:
            yield Fault(path, "has both key and key_sha256: keep one of them")


def _weak_keys(data: Data) -> Iterator[Fault]:
    for path, key in _own_keys(data):
        weak = weakness(key) if key else None
        if weak:
            yield Fault(path, weak)


def _own_keys(data: Data) -> Iterator[tuple[Path, str]]:
    """Every key the gateway itself asks for, with its path; backends' keys are not ours."""
    for path in (("admin", "key"), ("admin", "read_key"), ("metrics", "key")):
        key = _mapping(data.get(path[0])).get(path[1])
        if isinstance(key, str):
            yield path, key
    for place, settings in _keys(data):
        key = settings.get("key")
        if isinstance(key, str):
            yield ("keys", place, "key"), key


def _same_keys(data: Data) -> Iterator[Fault]:
    digests = [
        (path, hashlib.sha256(key.encode(errors="replace")).hexdigest())
        for path, key in _own_keys(data)
        if key
    ]
    for place, key in _keys(data):
        digest = key.get("key_sha256")
        if isinstance(digest, str):
            digests.append((("keys", place, "key_sha256"), digest.lower()))
    first: dict[str, Path] = {}
    for path, digest in digests:
        owner = first.setdefault(digest, path)
        if owner is not path and path[:2] != owner[:2]:
            yield Fault(path, f"is the same key as {dotted(owner)}: each needs its own")


def _key_names(data: Data) -> Iterator[Fault]:
    first: dict[str, int] = {}
    for place, key in _keys(data):
        name = key.get("name")
        if isinstance(name, str) and first.setdefault(name, place) != place:
            yield Fault(("keys", place, "name"), f"keys[{first[name]}] has this name already")


def _models_of_keys(data: Data) -> Iterator[Fault]:
    models = _models(data)
    aliases = {
        alias: name
        for name, model in models.items()
        for alias in _list(model.get("aliases"))
        if isinstance(alias, str)
    }
    for place, key in _keys(data):
        for position, wanted in enumerate(_list(key.get("models"))):
            if not isinstance(wanted, str) or "*" in wanted or "?" in wanted or wanted in models:
                continue
            path: Path = ("keys", place, "models", position)
            if wanted in aliases:
                yield Fault(path, f"is an alias: name the model itself, {aliases[wanted]}")
            else:
                yield Fault(path, f'names no model; defined: {listed(models)}, or "*" for all')


def _arms_of_keys(data: Data) -> Iterator[Fault]:
    arms = dict.fromkeys(arm for _, arm, _ in _arms(data))
    for place, key in _keys(data):
        for position, wanted in enumerate(_list(key.get("arms"))):
            if isinstance(wanted, str) and wanted not in arms:
                yield Fault(
                    ("keys", place, "arms", position),
                    f"names no arm; defined: {listed(arms)}",
                )


def _engines(data: Data) -> Iterator[Fault]:
    for name, backend in _mapping(data.get("backends")).items():
        engine = _mapping(_mapping(backend).get("engine"))
        tokens = _number(engine.get("max_num_batched_tokens"))
        sequences = _number(engine.get("max_num_seqs"))
        if tokens is not None and sequences is not None and tokens < sequences:
            yield Fault(
                ("backends", name, "engine", "max_num_batched_tokens"),
                f"must be at least max_num_seqs ({sequences:g}), or vLLM does not start",
            )


def _read_key_alone(data: Data) -> Iterator[Fault]:
    admin = _mapping(data.get("admin"))
    if admin.get("read_key") is not None and admin.get("key") is None:
        yield Fault(
            ("admin", "read_key"), "needs admin.key beside it: without that the admin API is off"
        )


_CHECKS: tuple[Callable[[Data], Iterator[Fault]], ...] = (
    _what_must_be_there,
    _backends_of_arms,
    _weights,
    _controls,
    _aliases,
    _key_material,
    _weak_keys,
    _same_keys,
    _key_names,
    _models_of_keys,
    _arms_of_keys,
    _engines,
    _read_key_alone,
)
