"""Settings from the environment: `GATEWAY_SERVER__PORT` wins over `server.port` of the file."""

from __future__ import annotations

from collections.abc import Mapping
from inspect import isclass
from typing import Any

from gateway.settings.faults import Fault, Path, dotted
from gateway.settings.tree import FixedSections, Section

PREFIX = "GATEWAY_"
_DELIMITER = "__"


def paths(env: Mapping[str, str]) -> dict[Path, str]:
    """Which variable sets which path. An empty variable counts as unset, as compose files do it."""
    found: dict[Path, str] = {}
    for variable, value in env.items():
        path = tuple(variable.removeprefix(PREFIX).lower().split(_DELIMITER))
        # A lone GATEWAY_X belongs to somebody else (GATEWAY_URL, a Kubernetes service's
        # variables) unless it names a section.
        ours = len(path) > 1 or path[0] in FixedSections.model_fields
        if value and variable.startswith(PREFIX) and ours:
            found[path] = variable
    return found


def overlay(data: dict[str, Any], env: Mapping[str, str]) -> tuple[dict[str, Any], list[Fault]]:
    """The file's data with the environment's values in it, and what is wrong with the latter."""
    variables = paths(env)
    if not variables:
        return data, []
    # Only here, because it takes longer to import than a check of a file takes.
    from pydantic_settings import BaseSettings, EnvSettingsSource, SettingsError

    class FromEnvironment(FixedSections, BaseSettings):  # type: ignore[misc]  # two model_configs
        pass

    source = EnvSettingsSource(
        FromEnvironment, env_prefix=PREFIX, env_nested_delimiter=_DELIMITER, case_sensitive=False
    )
    faults = []
    for path, variable in sorted(variables.items(), key=lambda item: len(item[0])):
        if path[0] not in FixedSections.model_fields:
            sections = ", ".join(FixedSections.model_fields)
            faults.append(Fault((variable,), f"the environment can set only {sections}"))
            continue
        if not _can_be_set(path):
            faults.append(Fault((variable,), f"there is nothing below {dotted(path[:-1])}"))
            continue
        source.env_vars = {variable.lower(): env[variable]}
        try:
            data = _merged(data, source())
        except (SettingsError, RecursionError):
            example = '["a", "b"]' if len(path) > 1 else '{"NAME": "value"}'
            faults.append(Fault(path, f"must be JSON, such as {example} (set by {variable})"))
    return data, faults


def _can_be_set(path: Path) -> bool:
    """Whether a path is a section, a setting, or at least a name a section might have."""
    section = FixedSections.model_fields[str(path[0])].annotation
    deepest = 2 if isclass(section) and issubclass(section, Section) else 1
    return len(path) <= deepest and "" not in path


def _merged(below: dict[str, Any], above: Mapping[str, Any]) -> dict[str, Any]:
    result = dict(below)
    for name, value in above.items():
        mine = result.get(name)
        if not isinstance(value, Mapping):
            result[name] = value
        elif mine is None or isinstance(mine, dict):
            result[name] = _merged(mine or {}, value)
        # else the file has something there that is no section, and validation will say so
    return result
