"""From the bytes of a configuration file to plain data, with every fault of the text itself."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import yaml

from gateway.errors import ConfigError
from gateway.settings.extent import check_extent
from gateway.settings.faults import Fault, Path, masked

_MERGE = "tag:yaml.org,2002:merge"
_TEXT = "tag:yaml.org,2002:str"
_QUOTED_NAME = re.compile(r"(alias|handle|tag|anchor) (['\"]).*\2", re.DOTALL)
# In {key: ${NAME}} YAML would take the reference's braces for a mapping's. Until a text is read
# they stand as two characters nobody types, of the same length so that columns in faults hold.
_BARE_REFERENCE = re.compile(r"\$\{([^\s{}\[\],\"'#]*)\}")
_OPEN, _CLOSE = "\uf8f0", "\uf8f1"
# What PyYAML says of the usual slips, in words that say what to look for. {line} is where what
# it was reading began, since it notices only later.
_SLIPS = (
    (
        "expected <block end>, but found '<scalar>'",
        "text that goes on from nothing: a name without its colon, or an unclosed quote above",
    ),
    (
        "expected <block end>",
        "does not line up with what stands above: names that belong together begin in one column",
    ),
    (
        "mapping values are not allowed",
        "a colon that cannot stand here: the line is indented too far, the one above lacks its "
        "colon, or a value with a colon needs quotes",
    ),
    ("could not find expected ':'", "the name in line {line} has no colon behind it"),
    ("expected ',' or", "the bracket opened in line {line} lacks a comma or its end before this"),
    ("found unexpected end of stream", "the quote opened in line {line} is not closed"),
    ("expected alphabetic", "a value that begins with * or & needs quotes"),
)
_UNWANTED_TAGS = ("tag:yaml.org,2002:timestamp", "tag:yaml.org,2002:value")


class _Loader(yaml.SafeLoader):
    """YAML without dates: 2024-01-01 stays the text it is in every other format."""

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self.yaml_implicit_resolvers = {
            first: [(tag, form) for tag, form in rules if tag not in _UNWANTED_TAGS]
            for first, rules in self.yaml_implicit_resolvers.items()
        }

    def construct_object(self, node: yaml.Node, deep: bool = False) -> Any:
        """PyYAML lets plain exceptions escape for `!!bool x`, `!!timestamp x` and long numbers."""
        try:
            value = super().construct_object(node, deep=deep)
            if isinstance(value, str):
                value.encode()  # half of a surrogate pair is no text
                return _with_braces(value)
            return value
        except (ValueError, KeyError, IndexError, AttributeError, TypeError):
            raise yaml.constructor.ConstructorError(
                None, None, "a value that cannot be read", node.start_mark
            ) from None


def read(
    content: bytes, label: str, holding: str = "models, backends and keys"
) -> tuple[dict[str, Any], list[Fault]]:
    """The mapping a file holds, and the faults that leave the rest of it readable.

    Args:
        label: what to call the file in a fault.
        holding: what the mapping is to hold.

    Raises:
        ConfigError: the text cannot be read as one mapping.
    """
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise ConfigError([f"{label}: is not UTF-8 text (byte {error.start})"]) from None
    if text.lstrip().startswith("{"):
        # JSON may be indented with tabs, which YAML refuses; inside strings JSON has none.
        text = text.replace("\t", " ")
    try:
        return _parse(text, label, holding)
    except yaml.MarkedYAMLError as error:
        raise ConfigError([_syntax(error, label)]) from None
    except yaml.reader.ReaderError as error:
        line = text.count("\n", 0, error.position) + 1
        raise ConfigError([f"{label}: line {line} holds a character YAML does not allow"]) from None
    except RecursionError:
        raise ConfigError([f"{label}: is nested too deeply"]) from None


def _parse(text: str, label: str, holding: str) -> tuple[dict[str, Any], list[Fault]]:
    loader = _Loader(_BARE_REFERENCE.sub(rf"${_OPEN}\1{_CLOSE}", text))
    try:
        node = loader.get_single_node()
        if node is None:
            return {}, []
        if not isinstance(node, yaml.MappingNode):
            raise ConfigError([f"{label}: must be a mapping with {holding}"])
        check_extent(node, label)
        faults = list(_names(node, (), set()))
        data: dict[str, Any] = loader.construct_document(node)
        return data, faults
    finally:
        loader.dispose()


def _names(node: yaml.Node, path: Path, seen: set[int]) -> Iterator[Fault]:
    """Names that are no text, and those given twice, of which YAML would silently keep the last.

    Each mapping counts where it is written, not where aliases repeat it. A name that is no text
    is read as it is written from here on, so that it can be found again in other faults' paths.
    """
    if id(node) in seen:
        return
    seen.add(id(node))
    if isinstance(node, yaml.SequenceNode):
        for place, item in enumerate(node.value):
            yield from _names(item, (*path, place), seen)
    if not isinstance(node, yaml.MappingNode):
        return
    lines: dict[str, int] = {}
    for key, value in node.value:
        name = _with_braces(str(key.value)) if isinstance(key, yaml.ScalarNode) else "?"
        at = (*path, masked(name))
        if isinstance(key, yaml.ScalarNode) and key.tag not in (_TEXT, _MERGE):
            key.tag = _TEXT
            yield Fault(at, "YAML does not read this name as text: put it in quotes")
        if key.tag != _MERGE and name in lines:
            yield Fault(at, f"is given twice, in lines {lines[name]} and {_line(key)}: keep one")
        lines.setdefault(name, _line(key))
        yield from _names(value, (*path, name), seen)


def _line(node: yaml.Node) -> int:
    return int(node.start_mark.line) + 1


def _with_braces(text: str) -> str:
    return text.replace(_OPEN, "{").replace(_CLOSE, "}")


def _syntax(error: yaml.MarkedYAMLError, label: str) -> str:
    """Where and what, without the line's text, which may hold a secret."""
    mark = error.problem_mark or error.context_mark
    where = f"line {mark.line + 1}, column {mark.column + 1}" if mark else "the text"
    problem = _QUOTED_NAME.sub(r"\1", error.problem or "cannot be read")
    if "\\t" in problem:
        problem = "a tab, where YAML wants spaces"
    began = (error.context_mark or mark).line + 1 if mark else ""
    plain = (words.format(line=began) for slip, words in _SLIPS if problem.startswith(slip))
    return f"{label}: {where}: {next(plain, problem)}"
