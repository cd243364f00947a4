"""`load`: from a file and the environment to settings, or to the list of all faults."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path as FilePath

from pydantic import ValidationError

from gateway.errors import ConfigError
from gateway.settings import crosschecks, environment, source
from gateway.settings.faults import Fault, Path, of_validation, told
from gateway.settings.files import read_file
from gateway.settings.substitute import Substitution
from gateway.settings.tree import Settings


def load(path: FilePath, env: Mapping[str, str]) -> Settings:
    """The settings a file and the environment give together; the environment wins.

    Raises:
        ConfigError: with every fault, each as `path: what is wrong, and what is allowed`; of very
            many, with the first and the number of the others. No fault repeats a value.
    """
    data, faults = source.read(_content(path), path.name)
    if not data.keys() & {"models", "backends"} and data.keys() & {"model", "extends"}:
        raise ConfigError(
            [f"{path}: configures an engine, not the gateway: gateway check --engine {path}"]
        )
    substitution = Substitution(env, path.parent)
    data = substitution.apply(data)
    data, misset = environment.overlay(data, env)
    faults += substitution.faults + misset
    settings = None
    try:
        settings = Settings.model_validate(data)
    except ValidationError as error:
        faults += of_validation(error)
    faults += crosschecks.faults(data)
    if settings is None or faults:
        raise ConfigError(told(_naming_variables(faults, environment.paths(env)), data))
    return settings


def _content(path: FilePath) -> bytes:
    try:
        return read_file(path)
    except FileNotFoundError:
        raise ConfigError([f"{path}: no such file; gateway init writes one"]) from None
    except OSError as error:
        raise ConfigError([f"{path}: cannot be read: {error.strerror}"]) from None


def _naming_variables(faults: Iterable[Fault], variables: Mapping[Path, str]) -> Iterator[Fault]:
    """Says of a fault in the environment which variable it is in."""
    for fault in faults:
        variable = variables.get(fault.path)
        known = variable is None or variable in fault.text
        yield fault if known else Fault(fault.path, f"{fault.text} (set by {variable})")
