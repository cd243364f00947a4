"""Settings merged into the text of a JSON, TOML or YAML file, with everything else left as it is.

Pure: text in, text out. Comments, order and layout stay.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, MutableMapping
from io import StringIO
from typing import Any

import tomlkit
from ruamel.yaml import YAML
from ruamel.yaml.error import YAMLError
from tomlkit.exceptions import TOMLKitError

from gateway.cli.connect import jsonc
from gateway.clients.setup import Form, UserFile


class Unreadable(ValueError):
    """The file is not what its name says; the message is the reason."""


def edited(file: UserFile, text: str | None) -> str:
    """The text that has `file`'s values in it; the same text if it has them already.

    Args:
        text: of the file as it is, or None where there is none.

    Raises:
        Unreadable: the text cannot be taken for a mapping in the file's form.
    """
    if text is None or not text.strip():
        text, content = "", _empty(file.form)
    else:
        content = _read(file.form, text)
    changed = _default(content, file.defaults)
    changed |= _merge(content, file.values)
    return _written(file.form, content, text) if changed else text


def fragment(file: UserFile) -> str:
    """What a person adds to the file by hand."""
    values = _without_removed(file.values)
    content = _empty(file.form)
    content.update(values)
    return _written(file.form, content, "").rstrip("\n")


def _empty(form: Form) -> MutableMapping[str, Any]:
    return tomlkit.document() if form == "toml" else {}


def _read(form: Form, text: str) -> MutableMapping[str, Any]:
    try:
        if form == "json":
            content = jsonc.read(text)
        elif form == "toml":
            return tomlkit.parse(text)
        else:
            content = _yaml(text).load(text)
    except json.JSONDecodeError as error:
        raise Unreadable(f"{error.msg} in line {error.lineno}") from None
    except (TOMLKitError, YAMLError, ValueError, RecursionError) as error:
        raise Unreadable(str(error).splitlines()[0]) from None
    if not isinstance(content, MutableMapping):
        raise Unreadable("it holds no mapping of names to values")
    return content


def _written(form: Form, content: MutableMapping[str, Any], before: str) -> str:
    if form == "json":
        return _json(content, before)
    if form == "toml":
        return tomlkit.dumps(content)
    out = StringIO()
    _yaml(before).dump(content, out)
    return out.getvalue()


def _json(content: MutableMapping[str, Any], before: str) -> str:
    if not before:
        return json.dumps(content, indent=2, ensure_ascii=False) + "\n"
    try:
        return jsonc.updated(before, content)
    except ValueError as error:
        raise Unreadable(str(error)) from None


def _yaml(text: str) -> YAML:
    yaml = YAML(typ="rt")
    yaml.preserve_quotes = True
    yaml.width = 1000
    if re.search(r"^ +- ", text, re.MULTILINE) or not text:
        yaml.indent(mapping=2, sequence=4, offset=2)
    return yaml


def _default(content: MutableMapping[str, Any], values: Mapping[str, Any]) -> bool:
    missing = {name: value for name, value in values.items() if name not in content}
    content.update(missing)
    return bool(missing)


def _merge(content: MutableMapping[str, Any], values: Mapping[str, Any]) -> bool:
    """Whether anything was changed."""
    changed = False
    for name, value in values.items():
        old = content.get(name)
        if value is None:
            if name in content:
                del content[name]
                changed = True
        elif isinstance(value, Mapping):
            if not isinstance(old, MutableMapping):
                content[name] = {}
                changed = True
            changed |= _merge(content[name], value)
        elif isinstance(value, list) and isinstance(old, list) and _named(value):
            changed |= _merge_named(old, value)
        elif old != value:
            content[name] = value
            changed = True
    return changed


def _named(values: list[Any]) -> bool:
    return all(isinstance(value, Mapping) and "name" in value for value in values)


def _merge_named(old: list[Any], values: list[Any]) -> bool:
    """Each goes into the entry of its name. A new one comes first: clients take the first."""
    changed = False
    for value in values:
        for entry in old:
            if isinstance(entry, MutableMapping) and entry.get("name") == value["name"]:
                changed |= _merge(entry, value)
                break
        else:
            old.insert(0, dict(value))
            changed = True
    return changed


def _without_removed(values: Mapping[str, Any]) -> dict[str, Any]:
    return {
        name: _without_removed(value) if isinstance(value, Mapping) else value
        for name, value in values.items()
        if value is not None
    }
