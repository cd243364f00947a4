"""`tool_choice` of the Responses API, and what chat completions make of it."""

from __future__ import annotations

from typing import Any

from gateway.protocols.translate.bad_fields import fault
from gateway.protocols.translate.responses_tools import Called, Names, Tool

_MODES = ("auto", "none", "required")
_PATH = "tool_choice"


def choose(choice: Any, functions: list[Tool], names: Names) -> tuple[list[Tool], Any]:
    """The functions to offer and chat's `tool_choice`, None where there is nothing to say.

    A choice among allowed tools leaves the others out, since chat has no other way of forbidding
    them. A tool that only the API's operator could run leaves the choice to the model.

    Raises:
        BadRequest: it is no choice, or names no tool of this request.
    """
    if choice is None or choice in _MODES:
        return functions, choice
    kind = choice.get("type") if isinstance(choice, dict) else None
    if not isinstance(kind, str):
        raise fault(_PATH, "has to be auto, none, required or an object with a `type`")
    if kind == "allowed_tools":
        return _allowed(choice, functions, names)
    if kind not in ("function", "custom"):
        return functions, "auto"
    function = _function(choice, names, _PATH)
    if function not in _offered(functions):
        raise fault(f"{_PATH}.name", "names none of the `tools`")
    return functions, {"type": "function", "function": {"name": function}}


def _allowed(choice: dict[str, Any], functions: list[Tool], names: Names) -> tuple[list[Tool], str]:
    mode, tools = choice.get("mode", "auto"), choice.get("tools")
    if mode not in ("auto", "required"):
        raise fault(f"{_PATH}.mode", "has to be auto or required")
    if not isinstance(tools, list):
        raise fault(f"{_PATH}.tools", "has to be a list")
    allowed = {
        _function(tool, names, f"{_PATH}.tools[{index}]")
        for index, tool in enumerate(tools)
        if not isinstance(tool, dict) or tool.get("type") in ("function", "custom")
    }
    return [tool for tool in functions if tool["name"] in allowed], mode


def _function(tool: Any, names: Names, path: str) -> str:
    name = tool.get("name") if isinstance(tool, dict) else None
    if not isinstance(name, str):
        raise fault(f"{path}.name", "has to be a string")
    namespace = tool.get("namespace")
    custom = tool.get("type") == "custom"
    return names.function(Called(name, namespace if isinstance(namespace, str) else None, custom))


def _offered(functions: list[Tool]) -> set[Any]:
    return {tool["name"] for tool in functions}
