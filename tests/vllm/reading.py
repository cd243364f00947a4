"""Reads the flags of `vllm serve` out of a release's source, without importing it.

To add a release to `gateway/vllm/flag_table.py`, unpack its wheels and run

    python -m tests.vllm.reading 0.32.0=FOLDER 0.33.0=FOLDER …

with every release in order, each FOLDER being the package `vllm`; it prints the new table.
With one release it prints where the table differs from it, and ends with status 1 if it does.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from pathlib import Path
from textwrap import wrap

from gateway.vllm import Fate, Kind, Version, flag
from gateway.vllm.flags import known

PLACES = (
    "engine/arg_utils.py",
    "entrypoints/openai/cli_args.py",
    "entrypoints/launchers/cli_args.py",
    "entrypoints/cli/serve.py",
)
CLASSES = ("EngineArgs", "AsyncEngineArgs", "FrontendArgs", "BaseFrontendArgs")


def flags_of(package: Path) -> dict[str, Kind]:
    """Every flag with how it is written."""
    nodes = [node for place in PLACES for node in _nodes(package / place)]
    # Before 0.7 one file held the flags of `vllm serve` and of `vllm chat`.
    nodes += [node for node in _nodes(package / "scripts.py") if _called_on(node, "serve_parser")]
    booleans: set[str] = set()
    found: dict[str, Kind] = {}
    for node in nodes:
        if isinstance(node, ast.ClassDef) and node.name in CLASSES:
            for name, kind in _fields(node):
                if kind is Kind.BOOLEAN:
                    booleans.add(name)
                # The server's own settings become flags in a loop, those of the engine one by one.
                if "Frontend" in node.name:
                    found[name] = kind
    for node in nodes:
        found |= dict(_added(node, booleans))
    return found


def differences(release: str, package: Path) -> list[str]:
    """Where the table says of a release what its source does not."""
    version = Version.parse(release)
    real = flags_of(package)
    lines = [f"{name} is no flag of {release}" for name in sorted({*known(version)} - {*real})]
    for name, kind in sorted(real.items()):
        told = flag(name, version)
        if told.fate is not Fate.PRESENT or told.kind is not kind:
            lines.append(
                f"{name} is {kind} in {release}, the table says {told.fate.value} {told.kind}"
            )
    return lines


def table(releases: Mapping[str, Mapping[str, Kind]]) -> list[str]:
    """The lines of the table for releases in order."""
    order = list(releases)
    spans: dict[tuple[int, int, Kind], list[str]] = {}
    for name in sorted({name for flags in releases.values() for name in flags}):
        kinds = [flags.get(name) for flags in releases.values()]
        for kind, run in groupby(enumerate(kinds), key=lambda one: one[1]):
            places = [place for place, _ in run]
            if kind is not None:
                spans.setdefault((places[0], places[-1], kind), []).append(name)
    lines: list[str] = []
    for (first, last, kind), names in sorted(spans.items(), key=lambda one: one[0]):
        end = "" if last == len(order) - 1 else order[last]
        text = f"{order[first]}..{end} {kind}: {' '.join(names)}"
        lines += wrap(text, 98, subsequent_indent="  ", break_on_hyphens=False)
    return lines


def _nodes(file: Path) -> list[ast.AST]:
    return list(ast.walk(ast.parse(file.read_text()))) if file.exists() else []


def _called_on(node: ast.AST, name: str) -> bool:
    return (
        isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and isinstance(node.func.value, ast.Name)
        and node.func.value.id == name
    )


def _fields(node: ast.ClassDef) -> Iterator[tuple[str, Kind]]:
    for line in node.body:
        if isinstance(line, ast.AnnAssign) and isinstance(line.target, ast.Name):
            is_bool = "bool" in ast.unparse(line.annotation)
            yield _dashed(line.target.id), Kind.BOOLEAN if is_bool else Kind.VALUE


def _added(node: ast.AST, booleans: set[str]) -> Iterator[tuple[str, Kind]]:
    """The flags of a call `add_argument("--x", …)`."""
    if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)):
        return
    if node.func.attr != "add_argument":
        return
    words = {one.arg: ast.unparse(one.value) for one in node.keywords}
    action = words.get("action", "")
    for one in node.args:
        if isinstance(one, ast.Constant) and str(one.value).startswith("--"):
            name = _dashed(str(one.value)[2:])
            # A keyword without a name is `**kwargs`, made from the setting's type.
            yield name, _kind(action, None in words and name in booleans)


def _kind(action: str, is_bool: bool) -> Kind:
    if "store_true" in action or "store_false" in action:
        return Kind.SWITCH
    if "StoreBoolean" in action:
        return Kind.STORE_BOOLEAN
    return Kind.BOOLEAN if "BooleanOptional" in action or is_bool else Kind.VALUE


def _dashed(name: str) -> str:
    return name.replace("_", "-")


def main(arguments: Sequence[str]) -> int:
    """Prints the table, or the differences; the status to end with."""
    pairs = [one.partition("=") for one in arguments]
    if len(pairs) == 1:
        found = differences(pairs[0][0], Path(pairs[0][2]))
        print("\n".join(found) or "no difference")
        return bool(found)
    print("\n".join(table({name: flags_of(Path(folder)) for name, _, folder in pairs})))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
