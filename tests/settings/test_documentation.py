"""docs/configuration.md tells every setting with its true default, and none that does not exist."""

from __future__ import annotations

import re
from collections.abc import Iterator
from inspect import isclass
from pathlib import Path
from typing import Any, get_args, get_origin

import yaml
from pydantic_core import PydanticUndefined

from gateway.admin.changes import AT_START
from gateway.settings import Settings
from gateway.settings.tree import FixedSections, Section
from tests.settings.samples import changed, faults

PAGE = Path(__file__).parents[2].joinpath("docs", "configuration.md").read_text()
ROW = re.compile(r"^\| `([^`]+)` \| (required|`[^`]+`) \| (.+) \|$", re.MULTILINE)
REQUIRED = "required"

# What stands for the names in a mapping, by the mapping's path.
NAMES = {"models": ".MODEL", "models.MODEL.arms": ".ARM", "backends": ".BACKEND", "keys": "[]"}


def section_in(annotation: Any) -> type[Section] | None:
    if isclass(annotation) and issubclass(annotation, Section):
        return annotation
    return next(filter(None, map(section_in, get_args(annotation))), None)


def settings_of(section: type[Section], above: str = "") -> Iterator[tuple[str, Any]]:
    """(path, default) of every setting below a section."""
    for name, field in section.model_fields.items():
        path = f"{above}{name}"
        inner = section_in(field.annotation)
        if inner is None:
            default = REQUIRED if field.is_required() else field.get_default()
            assert default is not PydanticUndefined
            yield path, default
            continue
        if get_origin(field.annotation) in (dict, list):
            path += NAMES[path]
        yield from settings_of(inner, f"{path}.")


def documented() -> dict[str, Any]:
    return {
        path: default if default == REQUIRED else yaml.safe_load(default.strip("`"))
        for path, default, _ in ROW.findall(PAGE)
    }


def test_every_setting_stands_there_with_its_default() -> None:
    for path, default in settings_of(Settings):
        assert documented().get(path, "not documented") == default, path


def test_no_setting_stands_there_that_does_not_exist() -> None:
    sections = {"models.MODEL": REQUIRED, "backends.BACKEND.engine": None}
    assert documented() == {**dict(settings_of(Settings)), **sections}


def test_no_setting_stands_there_twice() -> None:
    paths = [path for path, *_ in ROW.findall(PAGE)]
    assert len(paths) == len(set(paths)) > 50


def test_what_the_environment_can_set() -> None:
    said = re.search(r"can be set so: (.+?)\. Lists", PAGE)
    assert said is not None
    assert re.findall(r"`(\w+)`", said[1]) == list(FixedSections.model_fields)


def test_what_is_read_at_start_only() -> None:
    said = next(line for line in PAGE.splitlines() if line.endswith("are read at start only."))
    assert set(AT_START) == set(re.findall(r"`([\w.]+)`", said))


def test_its_faults_are_true(tmp_path: Path) -> None:
    data = changed(
        ("models/llama-3-70b/arms/chunk-512/weight", -1), ("keys/0/key", "${GATEWAY_KEY}")
    )
    assert "\n".join(faults(tmp_path, data)) in PAGE
