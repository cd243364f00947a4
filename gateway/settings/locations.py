"""Where in the file a fault is that pydantic found in a tree of settings."""

from __future__ import annotations

from inspect import isclass
from types import NoneType, UnionType
from typing import Annotated, Any, TypeGuard, Union, get_args, get_origin

from pydantic import BaseModel, JsonValue

_Place = tuple[str | int, ...]


def located(loc: _Place, root: type[BaseModel]) -> tuple[_Place, type[BaseModel]]:
    """The place in the file, and the innermost section that it is in.

    Pydantic's own path has more than names and positions: the branch where a field takes several
    kinds of value, and before what is inside a JSON value, whether that is a list or a mapping.

    Args:
        loc: pydantic's path, for a validation of `root`.
    """
    path: list[str | int] = []
    section = root
    kind: Any = root
    parts = iter(loc)
    for part in parts:
        if _is_section(kind):
            section = kind
            field = section.model_fields.get(str(part))
            kind = _plain(field.annotation) if field else None
        elif get_origin(kind) in (dict, list):
            kind = _plain(get_args(kind)[-1])
        elif kind is JsonValue:
            inside = next(parts, None)
            if inside is None:
                break
            part = inside
        else:
            kind = _list_among(kind)
            continue
        path.append(part)
    return tuple(path), section


def _is_section(kind: Any) -> TypeGuard[type[BaseModel]]:
    return isclass(kind) and issubclass(kind, BaseModel)


def _plain(annotation: Any) -> Any:
    """Without what is said about a kind beside it: its limits, or that it may be left out."""
    if get_origin(annotation) is Annotated:
        return _plain(get_args(annotation)[0])
    if get_origin(annotation) in (Union, UnionType):
        kinds = [one for one in get_args(annotation) if one is not NoneType]
        return _plain(kinds[0]) if len(kinds) == 1 else annotation
    return annotation


def _list_among(annotation: Any) -> Any:
    """The branch of a word or a list that has places of its own; None where there is none."""
    kinds = map(_plain, get_args(annotation))
    return next((one for one in kinds if get_origin(one) is list), None)
