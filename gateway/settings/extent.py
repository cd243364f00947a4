"""Bounds on what YAML's aliases make of a short text, before anything copies or prints it.

Ten levels of ten aliases each are a few lines that stand for ten thousand million values. An alias
costs nothing while it is one, so what is measured is the document with every alias written out.
"""

from __future__ import annotations

from typing import NamedTuple

import yaml

from gateway.errors import ConfigError

MOST_ADDED = 1_000_000
"""What aliases may add to a document: its values, and the characters in them."""

DEEPEST = 100
"""Levels of mappings and lists; walking them is recursive here and in what prints them."""


class Extent(NamedTuple):
    """How large and how deep a node is with its aliases written out."""

    size: int
    depth: int


def check_extent(document: yaml.Node, label: str) -> None:
    """Measure a document, in time that depends on its text alone.

    Args:
        label: what to call the file in a fault.

    Raises:
        ConfigError: an anchor contains itself, or the document is too deep or too large.
    """
    measure = _Measure(label)
    whole = measure.extent(document)
    if whole.size - measure.written > MOST_ADDED:
        raise ConfigError(
            [f"{label}: its aliases, written out, would add more than {MOST_ADDED} characters"]
        )


class _Measure:
    """Measures each node once, however many aliases lead to it.

    Attributes:
        written: the size without what aliases repeat.
    """

    def __init__(self, label: str) -> None:
        self._label = label
        self._known: dict[int, Extent] = {}
        self._above: set[int] = set()
        self.written = 0

    def extent(self, node: yaml.Node) -> Extent:
        known = self._known.get(id(node))
        if known is not None:
            return known
        if id(node) in self._above:
            line = node.start_mark.line + 1
            raise ConfigError([f"{self._label}: an anchor contains itself, at line {line}"])
        self._above.add(id(node))
        size, depth = 1, 0
        if isinstance(node, yaml.ScalarNode):
            size += len(node.value)
        self.written += size
        for part in _parts(node):
            below = self.extent(part)
            size += below.size
            depth = max(depth, below.depth + 1)
        if depth > DEEPEST:
            raise ConfigError([f"{self._label}: is nested too deeply"])
        self._above.remove(id(node))
        self._known[id(node)] = Extent(size, depth)
        return self._known[id(node)]


def _parts(node: yaml.Node) -> list[yaml.Node]:
    if isinstance(node, yaml.SequenceNode):
        return list(node.value)
    if isinstance(node, yaml.MappingNode):
        return [part for pair in node.value for part in pair]
    return []
