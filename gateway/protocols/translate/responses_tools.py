"""Tools of the Responses API as plain functions, and the calls of those functions as they were.

Engines know functions only. A namespace's tools become `<namespace>__<name>`, as vLLM spells them;
a custom tool, whose input is free text, becomes a function with one string. What the API's
operator would run (web search and its kind) does not exist here and is left out. Codex looks a
call up by namespace and name, so a call has to come back under both.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from gateway.errors import BadRequest
from gateway.protocols.translate.custom_input import custom_input

Tool = dict[str, Any]


class Called(NamedTuple):
    """A tool as the client knows it."""

    name: str
    namespace: str | None = None
    custom: bool = False


class Names:
    """What each tool is called on either side, for one request."""

    __slots__ = ("_called", "_functions")

    def __init__(self) -> None:
        self._called: dict[str, Called] = {}
        self._functions: dict[Called, str] = {}

    def add(self, called: Called) -> str:
        """Give a tool its function's name, a free one."""
        if called in self._functions:
            return self._functions[called]
        wanted = name = _flat(called)
        number = 2
        while name in self._called:
            name = f"{wanted}_{number}"
            number += 1
        self._called[name] = called
        self._functions[called] = name
        return name

    def function(self, called: Called) -> str:
        """What a tool is called towards the engine, also one that is no longer offered."""
        return self._functions.get(called) or _flat(called)

    def called(self, function: str) -> Called:
        """Which tool the engine means; a name that was never offered stays as it is."""
        return self._called.get(function) or Called(function)

    def restore(self, item: Mapping[str, Any]) -> Mapping[str, Any]:
        """A `function_call` item as the client's own tool was called; any other item as it is."""
        name = item.get("name")
        if item.get("type") != "function_call" or not isinstance(name, str):
            return item
        called = self.called(name)
        if not called.custom and called.namespace is None:
            return item if called.name == name else {**item, "name": called.name}
        restored = {**item, "name": called.name}
        if called.namespace is not None:
            restored["namespace"] = called.namespace
        if called.custom:
            restored["type"] = "custom_tool_call"
            restored["input"] = custom_input(restored.pop("arguments", "") or "")
        return restored


def flatten(tools: Iterable[Any]) -> tuple[list[Tool], Names]:
    """The tools as functions in the Responses API's own form, in the order given.

    Args:
        tools: the request's `tools`, as decoded JSON.

    Raises:
        BadRequest: one of them is no tool; the path says which.
    """
    names = Names()
    functions: list[Tool] = []
    for index, tool in enumerate(tools):
        path = f"tools[{index}]"
        if _kind(tool, path) == "namespace":
            functions += _of_namespace(tool, path, names)
        elif (function := _function(tool, path, names)) is not None:
            functions.append(function)
    return functions, names


def _of_namespace(tool: Tool, path: str, names: Names) -> list[Tool]:
    """A namespace's own description goes with its first function: functions have no other place."""
    namespace = _name(tool, path)
    within = tool.get("tools")
    if not isinstance(within, list):
        raise BadRequest(f"{path}.tools has to be a list.", param=f"{path}.tools")
    functions = [
        function
        for index, one in enumerate(within)
        if (function := _function(one, f"{path}.tools[{index}]", names, namespace)) is not None
    ]
    about = tool.get("description")
    if functions and isinstance(about, str) and about:
        first = functions[0]
        first["description"] = f"{about}\n\n{first.get('description') or ''}".rstrip()
    return functions


def _function(tool: Any, path: str, names: Names, namespace: str | None = None) -> Tool | None:
    kind = _kind(tool, path)
    if kind == "function":
        name = _name(tool, path)
        function = names.add(Called(name, namespace))
        return tool if function == name and namespace is None else {**tool, "name": function}
    if kind == "custom":
        return _of_custom(tool, names.add(Called(_name(tool, path), namespace, custom=True)))
    return None


def _of_custom(tool: Tool, function: str) -> Tool:
    about = tool.get("description")
    wanted = _grammar(tool.get("format"))
    texts = [text for text in (about, wanted) if isinstance(text, str) and text]
    return {
        "type": "function",
        "name": function,
        "description": "\n\n".join(texts),
        "parameters": {
            "type": "object",
            "properties": {"input": {"type": "string", "description": "The whole input."}},
            "required": ["input"],
            "additionalProperties": False,
        },
        "strict": False,
    }


def _grammar(form: Any) -> str:
    """What the engine would have held the input to, told to the model instead."""
    if not isinstance(form, dict) or form.get("type") != "grammar":
        return ""
    # Some servers nest the grammar as chat completions do.
    within = form.get("grammar")
    grammar = within if isinstance(within, dict) else form
    syntax, definition = grammar.get("syntax"), grammar.get("definition")
    if not isinstance(definition, str):
        return ""
    return f"The input has to follow this {syntax or 'formal'} grammar:\n{definition}"


def _flat(called: Called) -> str:
    return called.name if called.namespace is None else f"{called.namespace}__{called.name}"


def _kind(tool: Any, path: str) -> str:
    kind = tool.get("type") if isinstance(tool, dict) else None
    if not isinstance(kind, str):
        raise BadRequest(f"{path} has to be an object with a `type`.", param=path)
    return kind


def _name(tool: Tool, path: str) -> str:
    name = tool.get("name")
    if not isinstance(name, str) or not name:
        raise BadRequest(f"{path}.name has to be a non-empty string.", param=f"{path}.name")
    return name
