"""What differs between two configurations, in lines that hold no secret."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from pydantic import SecretStr

from gateway.settings import Settings

# Digests and addresses with passwords in them are nobody's business either.
HIDDEN = frozenset({"key_sha256", "database_url", "valkey_url"})

# Read once: the listening socket, the database and the collector stay those of the start.
AT_START = (
    "server.host",
    "server.port",
    "server.workers",
    "database_url",
    "traces",
)

ABSENT = object()


def changes(old: Settings, new: Settings) -> list[str]:
    """One line a setting, `PATH: OLD → NEW`, in the order of the configuration."""
    return [
        f"{line} (takes effect at the next start)" if line.startswith(AT_START) else line
        for line in _differences("", _tree(old), _tree(new))
    ]


def in_force(old: Settings, new: Settings) -> Settings:
    """`new`, but what is read at start only as `old` has it: so it stays a change until then."""
    update: dict[str, Any] = {}
    for path in AT_START:
        section, _, name = path.partition(".")
        if name:
            kept = {name: getattr(getattr(old, section), name)}
            update[section] = update.get(section, getattr(new, section)).model_copy(update=kept)
        else:
            update[section] = getattr(old, section)
    return new.model_copy(update=update)


def _tree(settings: Settings) -> dict[str, Any]:
    tree = settings.model_dump()
    tree["keys"] = {key["name"]: key for key in tree["keys"]}
    return tree


def _differences(path: str, old: Any, new: Any) -> Iterator[str]:
    if old == new:
        return
    if isinstance(old, dict) and isinstance(new, dict):
        for name in old | new:
            inner = f"{path}.{name}" if path else str(name)
            yield from _differences(inner, old.get(name, ABSENT), new.get(name, ABSENT))
    elif old is ABSENT:
        yield f"{path}: added"
    elif new is ABSENT:
        yield f"{path}: removed"
    elif isinstance(old, SecretStr) or isinstance(new, SecretStr) or _last(path) in HIDDEN:
        yield f"{path}: changed"
    else:
        yield f"{path}: {_shown(old)} → {_shown(new)}"


def _last(path: str) -> str:
    return path.rpartition(".")[2]


def _shown(value: Any) -> str:
    if isinstance(value, list):
        return "[" + ", ".join(map(_shown, value)) + "]"
    if isinstance(value, float):
        return f"{value:g}"
    if value is None or isinstance(value, bool):
        return {None: "none", True: "true", False: "false"}[value]
    # A mapping that came or went as a whole may hold secrets.
    return "set" if isinstance(value, dict) else str(value)
